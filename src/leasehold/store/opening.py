"""From a URL to a database: the one place that names the concrete stores."""

from __future__ import annotations

from pathlib import Path

from leasehold.clock import Micros
from leasehold.errors import BadSettings
from leasehold.store.address import redacted
from leasehold.store.database import Database

DEFAULT_FILE = "leasehold.db"
_POSTGRES = ("postgresql", "postgres")


def open_database(url: str, schema: str = "leasehold") -> Database:
    """Open `postgresql://…`, `sqlite:///path`, `sqlite://:memory:`, or a path to a file."""
    scheme = url.partition("://")[0].lower() if "://" in url else ""
    if scheme in _POSTGRES:
        return _open_postgres(url, schema)
    if scheme == "sqlite":
        # sqlite:///relative.db and sqlite:////absolute.db, as SQLAlchemy made familiar.
        return _open_sqlite(url.removeprefix("sqlite://").removeprefix("/"))
    if scheme or not url or "\0" in url or url.startswith("sqlite:"):
        raise BadSettings(
            f"{redacted(url)!r} is not a store: give postgresql://user@host/database, "
            "sqlite:///path/to/file.db, or the path of a file"
        )
    return _open_sqlite(url)


def open_memory(clock: Micros) -> Database:
    """A database in memory whose time comes from outside. For `leasehold.testing`."""
    from leasehold.store.sqlite.database import SqliteDatabase

    return SqliteDatabase(None, clock)


def _open_postgres(url: str, schema: str) -> Database:
    try:
        from leasehold.store.postgres.database import PostgresDatabase
    except ImportError as error:
        raise BadSettings(
            f"PostgreSQL needs psycopg ({error}): install `leasehold[postgres]`"
        ) from None
    return PostgresDatabase(url, schema)


def _open_sqlite(where: str) -> Database:
    from leasehold.store.sqlite.database import SqliteDatabase

    if where == ":memory:":
        return SqliteDatabase(None)
    if not where or where.endswith("/"):
        raise BadSettings("the SQLite URL names no file: give sqlite:///path/to/file.db")
    return SqliteDatabase(Path(where))
