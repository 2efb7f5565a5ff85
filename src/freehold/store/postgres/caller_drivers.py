"""Adapters over callers' connections: psycopg, psycopg2, asyncpg, SQLAlchemy and Django.

Only psycopg is imported: the modules of a connection's classes name its library. SQLAlchemy and
Django execute through their own API, so that they know of the transaction that begins.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Protocol

from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus

from freehold.errors import BadInput
from freehold.store.postgres.session import arows_of, rows_of
from freehold.store.statements import Rows


class CallerConnection(Protocol):
    """A blocking connection."""

    def is_in_transaction(self) -> bool:
        """Whether a savepoint is possible: a transaction is open, or the first statement begins
        one."""

    def rows(self, sql: bytes, values: list[Any]) -> Rows:
        """Executes SQL with numbered parameters."""


class AsyncCallerConnection(Protocol):
    """The same for asyncio."""

    async def open(self) -> None:
        """Called before the other methods."""

    def is_in_transaction(self) -> bool: ...

    async def rows(self, sql: bytes, values: list[Any]) -> Rows: ...


def caller_connection(connection: Any) -> CallerConnection:
    libraries = _libraries(connection)
    if isinstance(connection, Connection):
        return _Psycopg(connection)
    if "psycopg2" in libraries:
        return _Psycopg2(connection)
    if "django" in libraries:
        return _Django(connection)
    if _is_sqlalchemy(connection) and not _is_async(connection):
        return _SqlAlchemy(connection)
    raise _refused(connection, "enqueue", "aenqueue" if _is_async(connection) else None)


def async_caller_connection(connection: Any) -> AsyncCallerConnection:
    libraries = _libraries(connection)
    if isinstance(connection, AsyncConnection):
        return _AsyncPsycopg(connection)
    if "asyncpg" in libraries:
        return _Asyncpg(connection)
    if _is_sqlalchemy(connection) and _is_async(connection):
        return _AsyncSqlAlchemy(connection)
    blocks = isinstance(connection, Connection) or libraries & {"psycopg2", "django", "sqlalchemy"}
    raise _refused(connection, "aenqueue", "enqueue" if blocks else None)


def _libraries(connection: Any) -> set[str]:
    """Of its class and all base classes: a caller may have derived one."""
    return {each.__module__.partition(".")[0] for each in type(connection).__mro__}


def _is_sqlalchemy(connection: Any) -> bool:
    """A connection, or a session, which has one; an engine is neither."""
    has_one = hasattr(connection, "exec_driver_sql") or hasattr(connection, "connection")
    return "sqlalchemy" in _libraries(connection) and has_one


def _is_async(connection: Any) -> bool:
    modules = [each.__module__ for each in type(connection).__mro__]
    return (
        isinstance(connection, AsyncConnection)
        or any(each.startswith("sqlalchemy.ext.asyncio") for each in modules)
        or "asyncpg" in _libraries(connection)
    )


def _refused(connection: Any, call: str, other: str | None) -> BadInput:
    given = f"{type(connection).__module__}.{type(connection).__qualname__}"
    if other is not None:
        return BadInput(f"connection={given}: call {other} with it, not {call}")
    return BadInput(
        f"connection={given}: {call} takes an open connection of psycopg, "
        + (
            "asyncpg, or SQLAlchemy's asyncio"
            if call == "aenqueue"
            else "psycopg2, SQLAlchemy or Django"
        )
    )


# -- psycopg -------------------------------------------------------------------------------------


class _Psycopg:
    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection

    def is_in_transaction(self) -> bool:
        return _psycopg_is_in_transaction(self._connection)

    def rows(self, sql: bytes, values: list[Any]) -> Rows:
        return rows_of(self._connection, sql, values)


class _AsyncPsycopg:
    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self._connection = connection

    async def open(self) -> None:
        """Open already."""

    def is_in_transaction(self) -> bool:
        return _psycopg_is_in_transaction(self._connection)

    async def rows(self, sql: bytes, values: list[Any]) -> Rows:
        return await arows_of(self._connection, sql, values)


def _psycopg_is_in_transaction(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    status = connection.info.transaction_status
    return not connection.autocommit or status == TransactionStatus.INTRANS


# -- psycopg2 and Django: cursors of Python's database API ---------------------------------------


class _Psycopg2:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def is_in_transaction(self) -> bool:
        in_transaction = 2  # psycopg2.extensions.TRANSACTION_STATUS_INTRANS
        status = self._connection.info.transaction_status
        return not self._connection.autocommit or status == in_transaction

    def rows(self, sql: bytes, values: list[Any]) -> Rows:
        return _rows_by_cursor(self._connection, sql, values)


class _Django:
    """`django.db.connection`, or one of `django.db.connections`."""

    def __init__(self, connection: Any) -> None:
        if connection.vendor != "postgresql":
            raise _wrong_database(f"a Django connection to {connection.vendor}")
        self._connection = connection

    def is_in_transaction(self) -> bool:
        return not self._connection.get_autocommit()

    def rows(self, sql: bytes, values: list[Any]) -> Rows:
        return _rows_by_cursor(self._connection, sql, values)


def _rows_by_cursor(connection: Any, sql: bytes, values: list[Any]) -> Rows:
    text, order = _formatted(sql)
    with connection.cursor() as cursor:
        # Without parameters, drivers take a percent sign literally and it must not be escaped.
        cursor.execute(text, [values[each] for each in order] if order else None)
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []


@lru_cache(maxsize=256)
def _formatted(sql: bytes) -> tuple[str, tuple[int, ...]]:
    """With %s instead of numbers, and the index of the value for each."""
    text = sql.decode()
    order = tuple(int(number) - 1 for number in re.findall(r"\$(\d+)", text))
    if order:
        text = re.sub(r"\$\d+", "%s", text.replace("%", "%%"))
    return text, order


# -- asyncpg -------------------------------------------------------------------------------------


class _Asyncpg:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def open(self) -> None:
        """Open already."""

    def is_in_transaction(self) -> bool:
        return bool(self._connection.is_in_transaction())

    async def rows(self, sql: bytes, values: list[Any]) -> Rows:
        found = await self._connection.fetch(_as_texts(sql), *values)
        return [tuple(row) for row in found]


@lru_cache(maxsize=256)
def _as_texts(sql: bytes) -> str:
    """JSON is sent as text: a JSON codec that the caller has set on the connection would encode it
    a second time."""
    return re.sub(r"(\$\d+)::json\b", r"\1::text::json", sql.decode())


# -- SQLAlchemy ----------------------------------------------------------------------------------


class _SqlAlchemy:
    """A connection, a session, or a scoped one."""

    def __init__(self, given: Any) -> None:
        self._connection = given if hasattr(given, "exec_driver_sql") else given.connection()
        _check_dialect(self._connection)

    def is_in_transaction(self) -> bool:
        return _sqlalchemy_is_in_transaction(self._connection)

    def rows(self, sql: bytes, values: list[Any]) -> Rows:
        found = self._connection.exec_driver_sql(*_for_dialect(self._connection, sql, values))
        return [tuple(row) for row in found] if found.returns_rows else []


class _AsyncSqlAlchemy:
    def __init__(self, given: Any) -> None:
        self._given = given
        self._connection = given

    async def open(self) -> None:
        if not hasattr(self._given, "exec_driver_sql"):
            self._connection = await self._given.connection()
        _check_dialect(self._connection)

    def is_in_transaction(self) -> bool:
        return _sqlalchemy_is_in_transaction(self._connection.sync_connection)

    async def rows(self, sql: bytes, values: list[Any]) -> Rows:
        arguments = _for_dialect(self._connection, sql, values)
        found = await self._connection.exec_driver_sql(*arguments)
        return [tuple(row) for row in found] if found.returns_rows else []


def _check_dialect(connection: Any) -> None:
    dialect = connection.dialect
    if dialect.name != "postgresql":
        raise _wrong_database(f"a SQLAlchemy connection to {dialect.name}")


def _for_dialect(connection: Any, sql: bytes, values: list[Any]) -> tuple[Any, ...]:
    if connection.dialect.paramstyle.startswith("numeric"):  # asyncpg
        return (_as_texts(sql), tuple(values)) if values else (_as_texts(sql),)
    text, order = _formatted(sql)
    return (text, tuple(values[each] for each in order)) if order else (text,)


def _sqlalchemy_is_in_transaction(connection: Any) -> bool:
    """SQLAlchemy begins one by itself, unless the connection is in autocommit."""
    return not getattr(connection.connection.dbapi_connection, "autocommit", False)


def _wrong_database(given: str) -> BadInput:
    return BadInput(
        f"connection= is {given}: it must be open on the PostgreSQL database of the jobs"
    )
