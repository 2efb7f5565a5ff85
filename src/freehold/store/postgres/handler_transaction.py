"""Transactions of handlers, on connections of their own.

Errors of the handler's own statements are raised unchanged, and they may take as long as they like.
Only the commit needs care: if the connection breaks during it, its outcome is unknown. The
statements around the handler's own have the time limit of all others, so that a handler on a frozen
server ends with its lease.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus

from freehold.errors import BadInput, OutcomeUnknown, StoreUnavailable
from freehold.store.postgres.async_pool import AsyncPool, AsyncPooledConnection
from freehold.store.postgres.errors import translated
from freehold.store.postgres.pool import Pool, PooledConnection, answering_within
from freehold.store.postgres.session import Statements, all_statements, arows_of, rows_of
from freehold.store.postgres.timeline import with_check, without_check
from freehold.store.statements import Rows, StatementGroup


class PostgresTransaction:
    """Blocking. `begin`, then `commit` or `rollback`, once."""

    def __init__(self, pool: Pool, statements: Statements, answer_seconds: float) -> None:
        self._pool = pool
        self._statements = statements
        self._answer_seconds = answer_seconds
        self._stack = contextlib.ExitStack()
        #: The connection is the handler's: set and read under the lock.
        self._can_interrupt = False
        self._interrupting = threading.Lock()

    def begin(self) -> Connection[Any]:
        try:
            borrowed = self._pool.connection(writes=False)
            self._connection = self._stack.enter_context(borrowed)
            self._block = self._connection.transaction()
            with translated(writes=False), answering_within(self._connection, self._answer_seconds):
                self._block.__enter__()
        except BaseException:
            self._stack.close()
            raise
        self._can_interrupt = True
        return self._connection

    def interrupt(self) -> None:
        """Without asking the server, which may be frozen."""
        with self._interrupting, contextlib.suppress(OSError, psycopg.Error):
            if self._can_interrupt:
                with socket.socket(fileno=os.dup(self._connection.fileno())) as duplicate:
                    duplicate.shutdown(socket.SHUT_RDWR)

    def _take_back(self) -> None:
        with self._interrupting:
            self._can_interrupt = False

    @property
    def session(self) -> PostgresSavepointSession:
        """Works inside the transaction."""
        _check_open(self._connection)
        return PostgresSavepointSession(self._connection, self._statements, self._answer_seconds)

    def commit(self) -> None:
        """Raises OutcomeUnknown if the connection breaks meanwhile."""
        self._take_back()
        with self._stack:
            _check_open(self._connection)
            try:
                with answering_within(self._connection, self._answer_seconds):
                    self._block.__exit__(None, None, None)
            except psycopg.Error as error:
                raise _refused(self._connection, error) from error

    def rollback(self) -> None:
        """A connection that cannot roll back is closed, which has the same effect."""
        self._take_back()
        with (
            self._stack,
            contextlib.suppress(psycopg.Error),
            answering_within(self._connection, self._answer_seconds),
        ):
            self._block.__exit__(psycopg.Rollback, psycopg.Rollback(), None)


class AsyncPostgresTransaction:
    """The same for asyncio."""

    def __init__(self, pool: AsyncPool, statements: Statements, answer_seconds: float) -> None:
        self._pool = pool
        self._statements = statements
        self._answer_seconds = answer_seconds
        self._stack = contextlib.AsyncExitStack()

    async def begin(self) -> AsyncConnection[Any]:
        try:
            borrowed = self._pool.connection(writes=False)
            self._connection = await self._stack.enter_async_context(borrowed)
            self._block = self._connection.transaction()
            with translated(writes=False), answering_within(self._connection, self._answer_seconds):
                await self._block.__aenter__()
        except BaseException:
            await self._stack.aclose()
            raise
        return self._connection

    @property
    def session(self) -> AsyncPostgresSavepointSession:
        """Works inside the transaction."""
        _check_open(self._connection)
        return AsyncPostgresSavepointSession(
            self._connection, self._statements, self._answer_seconds
        )

    async def commit(self) -> None:
        """Raises OutcomeUnknown if the connection breaks meanwhile."""
        async with self._stack:
            _check_open(self._connection)
            try:
                with answering_within(self._connection, self._answer_seconds):
                    await self._block.__aexit__(None, None, None)
            except psycopg.Error as error:
                raise _refused(self._connection, error) from error

    async def rollback(self) -> None:
        """A connection that cannot roll back is closed, which has the same effect."""
        async with self._stack:
            limited = answering_within(self._connection, self._answer_seconds)
            with contextlib.suppress(psycopg.Error), limited:
                await self._block.__aexit__(psycopg.Rollback, psycopg.Rollback(), None)


class PostgresSavepointSession:
    """Inside the transaction of a handler: each group is a savepoint of it.

    Until the commit a broken connection means that nothing was written, so that the error is never
    OutcomeUnknown.
    """

    def __init__(
        self, connection: PooledConnection, statements: Statements, answer_seconds: float
    ) -> None:
        self._connection = connection
        self._statements = statements
        self._answer_seconds = answer_seconds

    def execute(self, group: StatementGroup) -> list[Rows]:
        if not group.writes or self._statements.schema in self._connection.checked_schemas:
            return self._execute(group)
        results = self._execute(with_check(group))
        return without_check(self._connection, self._statements.schema, results)

    def _execute(self, group: StatementGroup) -> list[Rows]:
        prepared = [self._statements.with_values(each) for each in all_statements(group)]
        with (
            translated(writes=False),
            answering_within(self._connection, self._answer_seconds),
            self._connection.transaction(),
        ):
            results = [rows_of(self._connection, *each) for each in prepared]
        return results[: len(group.statements)]


class AsyncPostgresSavepointSession:
    """The same for asyncio."""

    def __init__(
        self, connection: AsyncPooledConnection, statements: Statements, answer_seconds: float
    ) -> None:
        self._connection = connection
        self._statements = statements
        self._answer_seconds = answer_seconds

    async def execute(self, group: StatementGroup) -> list[Rows]:
        if not group.writes or self._statements.schema in self._connection.checked_schemas:
            return await self._execute(group)
        results = await self._execute(with_check(group))
        return without_check(self._connection, self._statements.schema, results)

    async def _execute(self, group: StatementGroup) -> list[Rows]:
        prepared = [self._statements.with_values(each) for each in all_statements(group)]
        with translated(writes=False), answering_within(self._connection, self._answer_seconds):
            async with self._connection.transaction():
                results = [await arows_of(self._connection, *each) for each in prepared]
        return results[: len(group.statements)]


def _check_open(connection: Connection[Any] | AsyncConnection[Any]) -> None:
    """psycopg forbids conn.commit() in here, but not a statement COMMIT."""
    if connection.closed:
        raise StoreUnavailable("the connection broke inside the transaction: nothing was written")
    if connection.info.transaction_status == TransactionStatus.IDLE:
        raise BadInput(
            "the handler has ended the transaction itself: leave COMMIT and ROLLBACK to "
            "ctx.transaction(); the job's end was not written"
        )


def _refused(connection: Connection[Any] | AsyncConnection[Any], error: psycopg.Error) -> Exception:
    """A commit that the server refused did not happen; its error is the handler's."""
    if not connection.closed:
        return error
    return OutcomeUnknown(
        f"the connection broke during the commit ({str(error).strip().splitlines()[0]}): it may "
        "or may not have happened; the job is either finished or tried again, with its writes"
    )
