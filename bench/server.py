"""The PostgreSQL that is measured: a database for each side, counters before and after."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import Connection, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from freehold.lab.devpostgres import DevPostgres

#: The name of sessions that are there on purpose, while others are waited for.
BYSTANDER = "bench bystander"
#: Sessions of killed workers end, and hand in their counters, within this time.
SETTLE_SECONDS = 20.0
#: Told with the results: what changes the figures, and is not always the default.
SETTINGS = (
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_level",
    "shared_buffers",
    "max_wal_size",
    "checkpoint_timeout",
    "wal_compression",
    "autovacuum",
    "max_connections",
    "commit_delay",
    "jit",
    "data_checksums",
)


@dataclass(frozen=True)
class Counters:
    """Of one database, except WAL, which is the whole server's: nothing else runs beside."""

    wal_bytes: int
    buffers: int
    transactions: int

    def per_job(self, before: Counters, jobs: int) -> dict[str, float]:
        return {
            "wal_bytes": round((self.wal_bytes - before.wal_bytes) / jobs, 1),
            "buffers": round((self.buffers - before.buffers) / jobs, 2),
            "transactions": round((self.transactions - before.transactions) / jobs, 4),
        }


class Server:
    """Databases on one server; the role must be allowed to create them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._made: set[str] = set()

    def database(self, name: str) -> str:
        """The URL of a database of this run."""
        parts = {**conninfo_to_dict(self.url), "dbname": f"freehold_bench_{name}"}
        return _url(parts)

    def connect(self, url: str | None = None) -> Connection[Any]:
        return psycopg.connect(url or self.url, autocommit=True)

    def renew(self, name: str, template: str | None = None) -> str:
        """An empty database of this name, or a copy of another."""
        with self.connect() as connection:
            _drop(connection, f"freehold_bench_{name}")
            made = sql.SQL("create database {}").format(sql.Identifier(f"freehold_bench_{name}"))
            if template is not None:
                of = sql.Identifier(f"freehold_bench_{template}")
                made += sql.SQL(" template {}").format(of)
            connection.execute(made)
        self.write_out()
        self._made.add(name)
        return self.database(name)

    def write_out(self) -> None:
        """So that nobody pays for what was written before, if the role may ask for it."""
        refused = contextlib.suppress(psycopg.errors.InsufficientPrivilege)
        with self.connect() as connection, refused:
            connection.execute("checkpoint")

    def count(self, url: str, query: str) -> int:
        with self.connect(url) as connection:
            row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])

    def counters(self, url: str) -> Counters:
        """When all sessions on this database have ended."""
        self._settle(url)
        name = conninfo_to_dict(url)["dbname"]
        with self.connect() as connection:
            row = connection.execute(
                "select (pg_current_wal_insert_lsn() - '0/0')::bigint, blks_hit + blks_read, "
                "xact_commit + xact_rollback from pg_stat_database where datname = %s",
                [name],
            ).fetchone()
        assert row is not None
        return Counters(*(int(value) for value in row))

    def _settle(self, url: str) -> None:
        name = conninfo_to_dict(url)["dbname"]
        deadline = time.monotonic() + SETTLE_SECONDS
        with self.connect() as connection:
            while time.monotonic() < deadline:
                row = connection.execute(
                    "select count(*) from pg_stat_activity where datname = %s "
                    "and backend_type = 'client backend' and application_name <> %s",
                    [name, BYSTANDER],
                ).fetchone()
                if row == (0,):
                    return
                time.sleep(0.05)

    def described(self) -> dict[str, Any]:
        with self.connect() as connection:
            rows = connection.execute(
                "select name, current_setting(name) from pg_settings where name = any (%s)",
                [list(SETTINGS)],
            ).fetchall()
            version = connection.execute("show server_version").fetchone()
        assert version is not None
        return {"version": version[0], "settings": dict(rows)}

    def close(self) -> None:
        with self.connect() as connection:
            for name in self._made:
                _drop(connection, f"freehold_bench_{name}")


def _drop(connection: Connection[Any], database: str) -> None:
    dropped = sql.SQL("drop database if exists {} with (force)")
    connection.execute(dropped.format(sql.Identifier(database)))


def _url(parts: dict[str, Any]) -> str:
    """As a URL, because the drivers of the peers take nothing else."""
    known = {key: value for key, value in parts.items() if value is not None}
    host, user = str(known.pop("host", "127.0.0.1")), known.pop("user", None)
    port, name, password = known.pop("port", 5432), known.pop("dbname"), known.pop("password", None)
    who = "" if user is None else f"{user}{'' if password is None else f':{password}'}@"
    if host.startswith("/"):
        return f"postgresql://{who}/{name}?host={host}&port={port}"
    return f"postgresql://{who}{host}:{port}/{name}"


@contextlib.contextmanager
def server(url: str | None) -> Iterator[Server]:
    """The one that is given, or one of our own with its default settings."""
    if url is not None:
        make_conninfo(url)  # a mistake in it is told before anything is measured
        with contextlib.closing(Server(url)) as given:
            yield given
        return
    settings: dict[str, str | int] = {"max_connections": 200}
    with (
        DevPostgres(settings=settings, port=0) as own,
        contextlib.closing(Server(own.url)) as found,
    ):
        yield found
