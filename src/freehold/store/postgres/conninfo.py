"""Where to connect: connection strings, and what went wrong."""

from __future__ import annotations

import re

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

from freehold.errors import BadSettings, StoreDenied, StoreUnavailable
from freehold.store.url import has_keywords, redacted

#: Half-open connections are found by these timeouts, instead of waiting for ever.
_DEFAULTS = {
    "connect_timeout": "10",  # of each host; see `_HOST_LIST_TIMEOUT`
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "application_name": "freehold",
}


#: A frozen host accepts connections and never answers: the next one of the list must get its turn.
_HOST_LIST_TIMEOUT = {"connect_timeout": "3"}


def conninfo(url: str) -> str:
    """The URL with timeouts where it names none."""
    if not has_keywords(url) and url.partition("?")[0].count("@") > 1:
        raise BadSettings(
            f"{redacted(url)!r} has more than one '@': write those of a password as %40"
        )
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        # libpq quotes the part that it cannot parse, which can be the password.
        why = re.sub(r'".*"', "…", " ".join(str(error).split()))
        raise BadSettings(f"{redacted(url)!r} is not a PostgreSQL URL: {why}") from None
    # After an unescaped ":" of a password, the rest of it looks like a port.
    if not re.fullmatch(r"[0-9,]*", str(given.get("port") or "")):
        raise BadSettings(
            f"{redacted(url)!r} is not a PostgreSQL URL: its port is no number; write a '/' of a "
            "password as %2F"
        )
    hosts = str(given.get("host") or given.get("hostaddr") or "")
    defaults = _DEFAULTS | _HOST_LIST_TIMEOUT if "," in hosts else _DEFAULTS
    return make_conninfo(**{**defaults, **{k: str(v) for k, v in given.items()}})


def server_and_database(url: str) -> str:
    """As libpq takes them from the URL, its parameters and the PG* variables."""
    defaults = {each.keyword.decode(): each.val for each in Conninfo.get_defaults()}
    found = {name: value.decode() for name, value in defaults.items() if value}
    found |= {name: str(value) for name, value in conninfo_to_dict(conninfo(url)).items()}
    found.setdefault("dbname", found.get("user", ""))
    names = ("service", "host", "hostaddr", "port", "dbname")
    return " ".join(f"{name}={found[name]}" for name in names if name in found)


_DEFAULT_PORT = 5432


def with_last(info: str, host: str, port: int) -> str:
    """The same hosts, this one as the last of them."""
    given = conninfo_to_dict(info)
    lists = {
        name: str(given[name]).split(",") for name in ("host", "hostaddr", "port") if name in given
    }
    count = max(map(len, lists.values()), default=1)
    if count == 1:
        return info
    ports = lists.setdefault("port", [""])
    lists["port"] = ports if len(ports) == count else ports * count
    hosts = lists.get("host") or lists["hostaddr"]

    def is_last(number: int) -> bool:
        return (hosts[number], int(lists["port"][number] or _DEFAULT_PORT)) == (host, port)

    order = sorted(range(count), key=is_last)
    changed = {name: ",".join(each[number] for number in order) for name, each in lists.items()}
    return make_conninfo(info, **changed)


#: Parts of the server's messages where it refuses a login without asking for a password.
_DENIALS = ("authentication failed", "no pg_hba.conf entry", "permission denied for database")
#: Of a host that `target_session_attrs=read-write` passes over.
_READ_ONLY = "session is read-only"
_FAILED_HOST = re.compile(
    r"^- host: '?(.*?)'?, port: '?(.*?)'?, hostaddr: (?:'.*?'|None): (.*)$", re.MULTILINE
)
#: And where it accepts the password, but has no room or is not up: that passes by itself.
_PASSING = (
    "too many connections",
    "connection slots",
    "no more connections",
    "starting up",
    "shutting down",
    "terminating connection",
    "closed the connection",
    "cannot connect to server",
    "timeout",
)


def unreachable(url: str, error: psycopg.Error) -> StoreUnavailable:
    text = _by_host(str(error))
    if "FATAL:" not in text and _READ_ONLY not in text:  # a server that sent an error is running
        text = f"{text}; is the server running?"
    kind = StoreDenied if _is_denied(error, text) else StoreUnavailable
    return kind(f"cannot connect to {redacted(url)}: {text}")


def _by_host(text: str) -> str:
    """For several hosts psycopg's text has the last error twice, and each host in each error."""
    failed = _FAILED_HOST.findall(text)
    if not failed:
        return " ".join(text.split()).partition(" Is the server running")[0]
    causes = []
    for host, port, cause in failed:
        reason = cause.partition(" failed: ")[2].rpartition(" failed: ")[2] or cause
        causes.append(f"{host}:{port}: {reason}".replace(":None", ""))
    if all(each.endswith(_READ_ONLY) for each in causes):
        return f"none of these hosts is a primary ({_READ_ONLY})"
    return "; ".join(causes)


def _is_denied(error: psycopg.Error, text: str) -> bool:
    """libpq has no error code of a failed login, and the server may speak another language."""
    if any(each in text for each in _DENIALS):
        return True
    asked = error.pgconn is not None and error.pgconn.used_password
    return asked and not any(each in text for each in _PASSING)
