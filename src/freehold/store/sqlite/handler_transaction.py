"""Transactions of handlers. A handler holds the write lock until its transaction ends.

All other writers wait, so these transactions must be short. Other writes of the same handler would
wait for ever; they are refused, unless they use the transaction's connection.

A blocking handler holds the lock in its thread. For a coroutine a separate thread holds it, so that
the event loop waits for no other writer. In memory the loop itself holds it, and its other
coroutines wait for the end of the transaction.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from concurrent.futures import Future
from contextlib import AbstractContextManager
from contextvars import ContextVar

from freehold.errors import BadInput
from freehold.store.sqlite.engine import Engine
from freehold.store.statements import Rows, StatementGroup

#: The engine whose write lock the running handler holds, and its session.
_open_session: ContextVar[tuple[Engine, SqliteSavepointSession] | None] = ContextVar(
    "open_session", default=None
)


class SqliteSavepointSession:
    """Inside an open transaction: each group is a savepoint of it, and has its own instant."""

    def __init__(self, engine: Engine, connection: sqlite3.Connection) -> None:
        self._engine = engine
        self.connection = connection
        self.is_open = True

    def execute(self, group: StatementGroup) -> list[Rows]:
        return self._engine.write_within(self.connection, group)


class AsyncSqliteSavepointSession:
    """The same for asyncio. Before the commit there is no fsync, and nothing to wait for."""

    def __init__(self, session: SqliteSavepointSession) -> None:
        self._session = session

    async def execute(self, group: StatementGroup) -> list[Rows]:
        return self._session.execute(group)


def refuse_inside(engine: Engine) -> None:
    """In the handler that holds the write lock, another write would wait for it for ever."""
    if session_inside(engine) is not None:
        raise BadInput(
            "inside ctx.transaction() other writes to the embedded store would wait for its end: "
            "pass connection=conn, or do this before or after the transaction"
        )


def session_inside(engine: Engine) -> SqliteSavepointSession | None:
    """The session of the transaction that the caller has open."""
    found = _open_session.get()
    return found[1] if found is not None and found[0] is engine and found[1].is_open else None


class SqliteTransaction:
    """Blocking. `begin`, then `commit` or `rollback`, once, in the same thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def begin(self) -> sqlite3.Connection:
        refuse_inside(self._engine)
        self._block: AbstractContextManager[sqlite3.Connection] = self._engine.transaction()
        self._session = _opened(self._engine, self._block.__enter__())
        return self._session.connection

    def interrupt(self) -> None:
        """Nothing to do: no statement waits for a server."""

    @property
    def session(self) -> SqliteSavepointSession:
        return _still_open(self._session)

    def commit(self) -> None:
        self._end(None)
        self._engine.notify_changed()

    def rollback(self) -> None:
        self._end(_RolledBack())

    def _end(self, error: BaseException | None) -> None:
        self._session.is_open = False
        self._block.__exit__(type(error) if error else None, error, None)


class AsyncMemoryTransaction:
    """For asyncio, in memory: on the loop itself."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._transaction = SqliteTransaction(engine)

    async def begin(self) -> sqlite3.Connection:
        refuse_inside(self._engine)
        await self._engine.loop_lock.wait()
        self._ended = self._engine.loop_lock.acquire()
        try:
            return self._transaction.begin()
        except BaseException:
            self._ended.set_result(None)
            raise

    @property
    def session(self) -> AsyncSqliteSavepointSession:
        return AsyncSqliteSavepointSession(self._transaction.session)

    async def commit(self) -> None:
        try:
            self._transaction.commit()
        finally:
            self._ended.set_result(None)

    async def rollback(self) -> None:
        try:
            self._transaction.rollback()
        finally:
            self._ended.set_result(None)


class AsyncFileTransaction:
    """For asyncio, on a file: a thread holds the write lock, the loop's thread writes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._begun: Future[sqlite3.Connection] = Future()
        self._ended: Future[None] = Future()
        self._commits: queue.SimpleQueue[bool] = queue.SimpleQueue()

    async def begin(self) -> sqlite3.Connection:
        refuse_inside(self._engine)
        for future in (self._begun, self._ended):
            future.set_running_or_notify_cancel()  # only the thread sets their results
        threading.Thread(target=self._hold, name="freehold-sqlite-lock", daemon=True).start()
        try:
            connection = await asyncio.wrap_future(self._begun)
        except asyncio.CancelledError:
            self._commits.put(False)
            raise
        self._session = _opened(self._engine, connection)
        return connection

    @property
    def session(self) -> AsyncSqliteSavepointSession:
        return AsyncSqliteSavepointSession(_still_open(self._session))

    async def commit(self) -> None:
        await self._end(commit=True)

    async def rollback(self) -> None:
        await self._end(commit=False)

    async def _end(self, *, commit: bool) -> None:
        self._session.is_open = False
        self._commits.put(commit)
        await asyncio.wrap_future(self._ended)

    def _hold(self) -> None:
        try:
            with self._engine.transaction() as connection:
                self._begun.set_result(connection)
                if not self._commits.get():
                    raise _RolledBack
        except _RolledBack:
            self._ended.set_result(None)
        except BaseException as error:
            (self._ended if self._begun.done() else self._begun).set_exception(error)
        else:
            self._ended.set_result(None)


class _RolledBack(Exception):
    """Ends a transaction without a commit."""


def _opened(engine: Engine, connection: sqlite3.Connection) -> SqliteSavepointSession:
    session = SqliteSavepointSession(engine, connection)
    _open_session.set((engine, session))
    return session


def _still_open(session: SqliteSavepointSession) -> SqliteSavepointSession:
    if not session.connection.in_transaction:
        raise BadInput(
            "the handler has ended the transaction itself (commit, rollback and executescript do): "
            "leave that to ctx.transaction(); the job's end was not written"
        )
    return session
