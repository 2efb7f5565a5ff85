"""Callers' open transactions, one for each supported library.

A `Caller` executes the caller's own SQL through its library, has the object for `connection=`, and
commits or rolls back. All have the same methods: those of blocking libraries are coroutines that
never wait.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import asyncpg
import django
import psycopg
import psycopg2
from django.conf import settings
from django.db import connections, transaction
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, create_async_engine
from sqlalchemy.ext.asyncio.session import async_sessionmaker
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

from freehold.model.job import Enqueued, NewJob
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.store import AsyncStore, Store

T = TypeVar("T")


@dataclass
class Caller:
    connection: Any
    is_async: bool
    run: Callable[[str], Any]
    commit: Callable[[], Any]
    rollback: Callable[[], Any]

    async def execute(self, sql: str) -> None:
        await _awaited(self.run(sql))

    async def enqueue(self, database: PostgresDatabase, jobs: list[NewJob]) -> list[Enqueued]:
        if self.is_async:
            session = database.async_caller_session(self.connection)
            return await AsyncStore(session).enqueue(jobs)
        return Store(database.caller_session(self.connection)).enqueue(jobs)

    async def end(self, *, commits: bool) -> None:
        await _awaited(self.commit() if commits else self.rollback())


async def _awaited(found: Any) -> Any:
    return await found if hasattr(found, "__await__") else found


OpenCaller: TypeAlias = Callable[[str], AbstractAsyncContextManager[Caller]]


# -- drivers -------------------------------------------------------------------------------------


@asynccontextmanager
async def by_psycopg(url: str) -> AsyncIterator[Caller]:
    with psycopg.connect(url) as connection:
        yield Caller(connection, False, connection.execute, connection.commit, connection.rollback)


@asynccontextmanager
async def by_async_psycopg(url: str) -> AsyncIterator[Caller]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield Caller(connection, True, connection.execute, connection.commit, connection.rollback)


@asynccontextmanager
async def by_psycopg2(url: str) -> AsyncIterator[Caller]:
    connection = psycopg2.connect(url)

    def run(sql: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql)

    yield Caller(connection, False, run, connection.commit, connection.rollback)
    connection.close()


@asynccontextmanager
async def by_asyncpg(url: str) -> AsyncIterator[Caller]:
    connection = await asyncpg.connect(url)
    begun = connection.transaction()
    await begun.start()
    yield Caller(connection, True, connection.execute, begun.commit, begun.rollback)
    await connection.close()


@asynccontextmanager
async def by_asyncpg_with_json(url: str) -> AsyncIterator[Caller]:
    """With a JSON codec, as many applications have it."""
    async with by_asyncpg(url) as caller:
        await caller.connection.set_type_codec(
            "json", encoder=json.dumps, decoder=json.loads, schema="pg_catalog"
        )
        yield caller


# -- SQLAlchemy ----------------------------------------------------------------------------------


def by_sqlalchemy(driver: str, kind: str) -> OpenCaller:
    creators: dict[str, Callable[[str], Any]] = {
        "psycopg": psycopg.connect,
        "psycopg2": psycopg2.connect,
    }

    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Caller]:
        engine = create_engine(
            f"postgresql+{driver}://", creator=lambda: creators[driver](url), poolclass=NullPool
        )
        kinds: dict[str, Callable[[], Any]] = {
            "connection": engine.connect,
            "session": lambda: Session(engine),
            "own session": lambda: _OwnSession(engine),
            "scoped session": lambda: scoped_session(sessionmaker(engine)),
        }
        made = kinds[kind]()
        yield Caller(made, False, lambda sql: made.execute(text(sql)), made.commit, made.rollback)
        made.close()
        engine.dispose()

    return opened


class _OwnSession(Session):
    """Derived, as by other libraries."""


_OwnSession.__module__ = "somewhere.else"


def by_async_sqlalchemy(driver: str, kind: str) -> OpenCaller:
    creators: dict[str, Callable[[str], Any]] = {
        "psycopg": psycopg.AsyncConnection.connect,
        "asyncpg": asyncpg.connect,
    }

    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Caller]:
        engine = create_async_engine(
            f"postgresql+{driver}://",
            async_creator=lambda *_, **__: creators[driver](url),
            poolclass=NullPool,
        )
        sessions = async_sessionmaker(engine)
        kinds: dict[str, Callable[[], Any]] = {
            "connection": engine.connect,
            "session": lambda: AsyncSession(engine),
            "scoped session": lambda: async_scoped_session(sessions, scopefunc=lambda: None),
        }
        made = kinds[kind]()
        if kind == "connection":
            await made.start()
        yield Caller(made, True, lambda sql: made.execute(text(sql)), made.commit, made.rollback)
        await made.close()
        await engine.dispose()

    return opened


# -- Django --------------------------------------------------------------------------------------


@asynccontextmanager
async def by_django(url: str) -> AsyncIterator[Caller]:
    """In a block of `transaction.atomic`, which an exception rolls back."""
    connection = django_connection(url)
    block = transaction.atomic()
    block.__enter__()
    error = ValueError("so it is rolled back")

    def run(sql: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql)

    yield Caller(
        connection,
        False,
        run,
        lambda: block.__exit__(None, None, None),
        lambda: block.__exit__(ValueError, error, None),
    )
    connection.close()


def django_connection(url: str) -> Any:
    """`django.db.connection`, to this database."""
    if not settings.configured:
        settings.configure(
            DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "later"}},
            LOGGING_CONFIG=None,
        )
        django.setup()
    info = conninfo_to_dict(url)
    connection = connections["default"]
    connection.close()
    connection.settings_dict.update(
        NAME=info["dbname"],
        HOST=info.get("host", ""),
        USER=info.get("user", ""),
        PORT=str(info.get("port", "")),
    )
    return connection


# -- without a transaction -----------------------------------------------------------------------


@asynccontextmanager
async def in_autocommit(driver: str, url: str) -> AsyncIterator[Caller]:
    """Each statement is committed by itself. Used for `enqueue` only."""
    if driver == "asyncpg":
        connection = await asyncpg.connect(url)
        yield Caller(connection, True, *_NOTHING)
        await connection.close()
    elif driver == "async alchemy":
        engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=lambda *_, **__: asyncpg.connect(url),
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
        )
        async with engine.connect() as awaited:
            yield Caller(awaited, True, *_NOTHING)
        await engine.dispose()
    elif driver == "alchemy":
        blocking = create_engine(
            "postgresql+psycopg://",
            creator=lambda: psycopg.connect(url),
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
        )
        with blocking.connect() as opened:
            yield Caller(opened, False, *_NOTHING)
        blocking.dispose()
    else:
        plain = {"psycopg": psycopg.connect, "psycopg2": psycopg2.connect}[driver](url)
        plain.autocommit = True
        yield Caller(plain, False, *_NOTHING)
        plain.close()


def _nothing(*_: Any) -> None: ...


_NOTHING = (_nothing, _nothing, _nothing)

BLOCKING: dict[str, OpenCaller] = {
    "psycopg": by_psycopg,
    "psycopg2": by_psycopg2,
    "SQLAlchemy connection, psycopg": by_sqlalchemy("psycopg", "connection"),
    "SQLAlchemy connection, psycopg2": by_sqlalchemy("psycopg2", "connection"),
    "SQLAlchemy session": by_sqlalchemy("psycopg", "session"),
    "SQLAlchemy session, derived": by_sqlalchemy("psycopg2", "own session"),
    "SQLAlchemy session, scoped": by_sqlalchemy("psycopg", "scoped session"),
    "Django": by_django,
}
ASYNC: dict[str, OpenCaller] = {
    "psycopg, awaited": by_async_psycopg,
    "asyncpg": by_asyncpg,
    "asyncpg with JSON": by_asyncpg_with_json,
    "SQLAlchemy awaited connection, asyncpg": by_async_sqlalchemy("asyncpg", "connection"),
    "SQLAlchemy awaited session, asyncpg": by_async_sqlalchemy("asyncpg", "session"),
    "SQLAlchemy awaited session, scoped": by_async_sqlalchemy("asyncpg", "scoped session"),
    "SQLAlchemy awaited session, psycopg": by_async_sqlalchemy("psycopg", "session"),
}
CALLERS = BLOCKING | ASYNC


def run_scenario(opened: OpenCaller, scenario: Coroutine[Any, Any, T]) -> T:
    """Blocking libraries run outside of an event loop; Django even refuses to run in one."""
    if opened in ASYNC.values():
        return asyncio.run(scenario)
    try:
        scenario.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError("something was awaited")
