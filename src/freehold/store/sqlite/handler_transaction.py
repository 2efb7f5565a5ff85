"""Transactions that a handler fills itself: it has the pen until it ends, and everybody waits.

So they must be short. While one is open, other writes of its own handler would wait for it for
ever; they are refused, unless they are given its connection.

A blocking handler holds the pen in its thread. For a coroutine a thread of its own holds it, so
that the event loop waits for no other writer. In memory the loop itself holds it, and whatever
else runs on the loop waits for its turn.
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

#: Which engine's pen the running handler holds, if any.
_holding: ContextVar[tuple[Engine, SqliteSavepointSession] | None] = ContextVar(
    "holding", default=None
)


class SqliteSavepointSession:
    """Inside an open transaction: each batch is a savepoint of it, judged by the time it runs."""

    def __init__(self, engine: Engine, connection: sqlite3.Connection) -> None:
        self._engine = engine
        self.connection = connection
        self.is_open = True

    def execute(self, batch: StatementGroup) -> list[Rows]:
        return self._engine.write_within(self.connection, batch)


class AsyncSqliteSavepointSession:
    """The same for asyncio; it is memory and disk cache only, nothing to wait for."""

    def __init__(self, session: SqliteSavepointSession) -> None:
        self._session = session

    async def execute(self, batch: StatementGroup) -> list[Rows]:
        return self._session.execute(batch)


def refuse_inside(engine: Engine) -> None:
    """What waits for the pen would wait for ever in the handler that holds it."""
    if session_inside(engine) is not None:
        raise BadInput(
            "inside ctx.transaction() the embedded store waits for its end: pass "
            "connection=conn, or do this before or after the transaction"
        )


def session_inside(engine: Engine) -> SqliteSavepointSession | None:
    """The session of the transaction that the caller has open."""
    held = _holding.get()
    return held[1] if held is not None and held[0] is engine and held[1].is_open else None


class SqliteTransaction:
    """Blocking. `begin`, then `commit` or `rollback`, once, in the same thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def begin(self) -> sqlite3.Connection:
        refuse_inside(self._engine)
        self._held: AbstractContextManager[sqlite3.Connection] = self._engine.transaction()
        self._session = _opened(self._engine, self._held.__enter__())
        return self._session.connection

    @property
    def session(self) -> SqliteSavepointSession:
        return _still_open(self._session)

    def commit(self) -> None:
        self._end(None)
        self._engine.tell_changed()

    def rollback(self) -> None:
        self._end(_RolledBack())

    def _end(self, why: BaseException | None) -> None:
        self._session.is_open = False
        self._held.__exit__(type(why) if why else None, why, None)


class AsyncMemoryTransaction:
    """For asyncio, in memory: on the loop itself."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._transaction = SqliteTransaction(engine)

    async def begin(self) -> sqlite3.Connection:
        refuse_inside(self._engine)
        await self._engine.loop_turn.wait()
        self._ended = self._engine.loop_turn.take()
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
    """For asyncio, on a file: a thread holds the pen, the loop's thread uses it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._begun: Future[sqlite3.Connection] = Future()
        self._ended: Future[None] = Future()
        self._verdict: queue.SimpleQueue[bool] = queue.SimpleQueue()

    async def begin(self) -> sqlite3.Connection:
        refuse_inside(self._engine)
        for future in (self._begun, self._ended):
            future.set_running_or_notify_cancel()  # the thread settles them, nobody else
        threading.Thread(target=self._hold, name="freehold-sqlite-pen", daemon=True).start()
        try:
            connection = await asyncio.wrap_future(self._begun)
        except asyncio.CancelledError:
            self._verdict.put(False)
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
        self._verdict.put(commit)
        await asyncio.wrap_future(self._ended)

    def _hold(self) -> None:
        try:
            with self._engine.transaction() as connection:
                self._begun.set_result(connection)
                if not self._verdict.get():
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
    _holding.set((engine, session))
    return session


def _still_open(session: SqliteSavepointSession) -> SqliteSavepointSession:
    if not session.connection.in_transaction:
        raise BadInput(
            "the handler has ended the transaction itself (commit, rollback and executescript do): "
            "leave that to ctx.transaction(); the job's end was not written"
        )
    return session
