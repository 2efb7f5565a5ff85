"""The URL of the jobs' store, from Django's own settings of the database."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from django.core.exceptions import ImproperlyConfigured
from django.db import connections

#: What Django or psycopg take from OPTIONS, and libpq does not know.
_NOT_OF_LIBPQ = frozenset(
    {
        "assume_role",
        "client_encoding",
        "cursor_factory",
        "isolation_level",
        "pool",
        "prepare_threshold",
        "server_side_binding",
        "context",
        "row_factory",
        "autocommit",
    }
)
MEMORY_URL = "sqlite://:memory:"


def url_of_database(alias: str) -> str:
    """The URL of a database as it is named now: during tests Django gives it another name. Raises
    ImproperlyConfigured for other databases than PostgreSQL and SQLite."""
    connection = connections[alias]
    if connection.vendor == "postgresql":
        return _postgres_url(connection.settings_dict)
    if connection.vendor == "sqlite":
        return MEMORY_URL if connection.is_in_memory_db() else f"sqlite:///{_name(connection)}"
    raise ImproperlyConfigured(
        f"the database {alias!r} is {connection.vendor}: jobs are stored in PostgreSQL or SQLite. "
        'Name another one in OPTIONS["DATABASE"], or give the URL of a store in OPTIONS["URL"]'
    )


def _name(connection: Any) -> str:
    return str(connection.settings_dict["NAME"])


def _postgres_url(settings: dict[str, Any]) -> str:
    """Everything but the name as parameters: a host may be the folder of a socket. The name is what
    logs show of a URL."""
    options = settings.get("OPTIONS") or {}
    given = {
        "user": settings.get("USER"),
        "password": settings.get("PASSWORD"),
        "host": settings.get("HOST"),
        "port": settings.get("PORT"),
        **{name: value for name, value in options.items() if name not in _NOT_OF_LIBPQ},
    }
    present = {name: str(value) for name, value in given.items() if value not in (None, "")}
    name = quote(str(settings.get("NAME") or ""), safe="")
    return f"postgresql:///{name}?{urlencode(present, quote_via=quote)}"
