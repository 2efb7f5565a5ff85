"""Which URLs name PostgreSQL, and URLs as they may be shown: never with a password."""

from __future__ import annotations

import re

#: A password with a bare "@", "/" or "?" in it makes parts of itself look like a host or a path;
#: such a URL does not match, and is not shown.
_SHOWABLE = re.compile(
    r"[^:/]+://"
    r"(?:(?P<user>[^:@/?#]*)(?::[^:@/?#]*)?@)?"
    r"(?P<host>(?:\[[0-9A-Fa-f:.]*\]|[^\[\]:@/?#])*(?::\d+)?(?:,[^\[\]:@/?#]*(?::\d+)?)*)"
    r"(?P<path>/[^@?#]*)?(?:[?#].*)?",
    re.DOTALL,
)

_POSTGRES = ("postgresql", "postgres")
#: A word of libpq's other notation, "host=db dbname=shop". A file of that name would show its
#: password.
_KEYWORD = re.compile(
    r"(?:^|[\s;])(?:host|hostaddr|port|dbname|database|user|username|uid|password|passwd|pwd"
    r"|passfile|service|server|sslmode|options|application_name|connect_timeout|target_session_attrs)\s*=",
    re.IGNORECASE,
)
_PAIR = re.compile(r"\s*(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)*)(?=\s|$)", re.DOTALL)


def is_postgres(url: str) -> bool:
    """``postgresql://…`` with or without a driver, as in ``postgresql+asyncpg://…``, or libpq's
    ``host=… dbname=…``."""
    return has_keywords(url) or ("://" in url and _scheme(url) in _POSTGRES)


def has_keywords(url: str) -> bool:
    return _KEYWORD.search(url.partition("://")[0]) is not None


def without_driver(url: str) -> str:
    """SQLAlchemy's ``postgresql+psycopg://…`` as libpq understands it."""
    return url if has_keywords(url) else f"{_scheme(url)}://{url.partition('://')[2]}"


def _scheme(url: str) -> str:
    return url.partition("://")[0].lower().partition("+")[0]


def redacted(url: str) -> str:
    """The URL without its password and parameters; parts that are ambiguous are left out."""
    if has_keywords(url):
        return _redacted_keywords(url)
    scheme, separator, _ = url.partition("://")
    if not separator:
        return url
    shown = _SHOWABLE.fullmatch(url)
    if shown is None or ("@" in url and shown["user"] is None):
        return f"{scheme}://…"
    user = f"{shown['user']}@" if shown["user"] else ""
    return f"{scheme}://{user}{shown['host']}{shown['path'] or ''}"


def _redacted_keywords(text: str) -> str:
    """As a URL."""
    pairs = _PAIR.findall(text)
    if _PAIR.sub("", text).strip() or ";" in text:
        return "postgresql://…"
    given = {name: re.sub(r"\\(.)", r"\1", value.strip("'")) for name, value in pairs}
    user = f"{given['user']}@" if "user" in given else ""
    host = given.get("host", given.get("hostaddr", ""))
    port = f":{given['port']}" if "port" in given else ""
    name = f"/{given['dbname']}" if "dbname" in given else ""
    # The name of a database can be a whole URL, and the host the folder of a socket.
    return f"postgresql://{user}{host}{port}{name}" if "://" not in name else "postgresql://…"
