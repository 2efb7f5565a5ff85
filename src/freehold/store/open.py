"""From a URL to a database: the one place that names the concrete stores."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path

from freehold.clock import Micros
from freehold.errors import BadSettings
from freehold.store.database import Database, ServerOptions, SessionOptions
from freehold.store.shard import MovableShard
from freehold.store.url import is_postgres, redacted, without_driver

DEFAULT_FILE = "freehold.db"
_DEFAULT_OPTIONS = SessionOptions()


def open_database(
    url: str, schema: str = "freehold", options: ServerOptions = _DEFAULT_OPTIONS
) -> Database:
    """Open `postgresql://…`, libpq's `host=… dbname=…`, `sqlite:///path`, `sqlite://:memory:`, or a
    path to a file. ``options`` are for PostgreSQL."""
    if is_postgres(url):
        return _open_postgres(url, schema, options)
    from freehold.store.sqlite.database import SqliteDatabase

    return SqliteDatabase(_file(url))


def open_shard(
    url: str, schema: str = "freehold", options: ServerOptions = _DEFAULT_OPTIONS
) -> MovableShard:
    """The shard for tenants at the same URL."""
    if is_postgres(url):
        return _open_postgres_shard(url, schema, options)
    from freehold.store.sqlite.shard import SqliteShard

    path = _file(url)
    if path is None:
        raise BadSettings("a store in memory has no tenants: give a file, or postgresql://…")
    return SqliteShard(path)


def missing_file(url: str) -> Path | None:
    """The file that opening this URL would create; None: it exists, or the URL names no file."""
    path = None if is_postgres(url) else _file(url)
    return None if path is None or path.exists() else path


def identity_of(url: str, schema: str) -> str:
    """The same text for every URL of one store, whatever its password and options; no secrets."""
    if not is_postgres(url):
        path = _file(url)
        return ":memory:" if path is None else str(path.resolve())
    with _with_psycopg():
        from freehold.store.postgres.conninfo import server_and_database
    return f"{server_and_database(without_driver(url))} {schema}"


@contextlib.contextmanager
def scratch_store(url: str) -> Iterator[tuple[str, str]]:
    """URL and schema of an empty store beside that of the URL, dropped afterwards. Its name shows
    its origin, should the process be killed before."""
    name = f"freehold_bench_{secrets.token_hex(4)}"
    if is_postgres(url):
        try:
            yield url, name
        finally:
            _erase_postgres(url, name)
        return
    path = _file(url)
    if path is None:
        yield url, name
        return
    from freehold.store.sqlite import file_copy

    beside = path.with_name(f"{name}.db")
    try:
        yield str(beside), name
    finally:
        file_copy.remove(beside)


def open_memory(clock: Micros) -> Database:
    """A database in memory on the given clock. For `freehold.testing`."""
    from freehold.store.sqlite.database import SqliteDatabase

    return SqliteDatabase(None, clock)


def _open_postgres(url: str, schema: str, options: ServerOptions) -> Database:
    with _with_psycopg():
        from freehold.store.postgres.database import PostgresDatabase
    return PostgresDatabase(without_driver(url), schema, options=options)


def _erase_postgres(url: str, schema: str) -> None:
    with _with_psycopg():
        from freehold.store.postgres import schema_copy
        from freehold.store.postgres.pool import Pool
    with (
        contextlib.closing(Pool(without_driver(url), size=1)) as pool,
        pool.connection(writes=True) as connection,
    ):
        if schema_copy.exists(connection, schema):
            schema_copy.drop(connection, schema)


def _open_postgres_shard(url: str, schema: str, options: ServerOptions) -> MovableShard:
    with _with_psycopg():
        from freehold.store.postgres.shard import PostgresShard
    return PostgresShard(without_driver(url), schema, options=options)


@contextlib.contextmanager
def _with_psycopg() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise BadSettings(
            f"PostgreSQL needs psycopg ({error}): install `freehold[postgres]`"
        ) from None


def _file(url: str) -> Path | None:
    """The file that a URL or a path names; None: in memory."""
    scheme = url.partition("://")[0].lower() if "://" in url else ""
    if scheme not in ("", "sqlite") or not url or "\0" in url or _is_half_a_url(url):
        raise BadSettings(
            f"{redacted(url)!r} is not a store: give postgresql://user@host/database, "
            "sqlite:///path/to/file.db, or the path of a file"
        )
    # sqlite:///relative.db and sqlite:////absolute.db, as SQLAlchemy made familiar.
    where = url.removeprefix("sqlite://").removeprefix("/") if scheme else url
    if where == ":memory:":
        return None
    if not where or where.endswith("/"):
        raise BadSettings("the SQLite URL names no file: give sqlite:///path/to/file.db")
    return Path(where)


def _is_half_a_url(url: str) -> bool:
    return url.startswith("sqlite:") and "://" not in url
