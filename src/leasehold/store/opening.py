"""From a URL to a database: the one place that names the concrete stores."""

from __future__ import annotations

import re
from pathlib import Path

from leasehold.errors import BadSettings
from leasehold.store.database import Database

DEFAULT_FILE = "leasehold.db"
_POSTGRES = ("postgresql", "postgres")
#: A password with a bare "@", "/" or "?" in it makes parts of itself look like a host or a path;
#: such a URL does not match, and is not shown.
_SHOWABLE = re.compile(
    r"[^:/]+://"
    r"(?:(?P<user>[^:@/?#]*)(?::[^:@/?#]*)?@)?"
    r"(?P<host>(?:\[[0-9A-Fa-f:.]*\]|[^\[\]:@/?#])*(?::\d+)?(?:,[^\[\]:@/?#]*(?::\d+)?)*)"
    r"(?P<path>/[^@?#]*)?(?:[?#].*)?",
    re.DOTALL,
)


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


def redacted(url: str) -> str:
    """The URL without its password and parameters; what cannot be told apart is left out."""
    scheme, separator, _ = url.partition("://")
    if not separator:
        return url
    shown = _SHOWABLE.fullmatch(url)
    if shown is None or ("@" in url and shown["user"] is None):
        return f"{scheme}://…"
    user = f"{shown['user']}@" if shown["user"] else ""
    return f"{scheme}://{user}{shown['host']}{shown['path'] or ''}"
