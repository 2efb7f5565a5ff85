"""The measured PostgreSQL: a database for each contender, and counters before and after."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import psycopg
from psycopg import Connection, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from freehold.lab.devpostgres import DevPostgres

#: The application name of sessions that stay open while the harness waits for all others to end.
OPEN_SESSION = "bench open session"
#: Sessions of killed workers end, and add to the counters, within this time.
SETTLE_SECONDS = 20.0
#: Settings that change the figures; they are part of the results.
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
    """The counters of one database; WAL is that of the whole server, which runs nothing else."""

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
        self._created: set[str] = set()

    def database(self, name: str) -> str:
        """The URL of a database of this run."""
        parts = {**conninfo_to_dict(self.url), "dbname": f"freehold_bench_{name}"}
        return _url(parts)

    def connect(self, url: str | None = None) -> Connection[Any]:
        return psycopg.connect(url or self.url, autocommit=True)

    def recreate(self, name: str, template: str | None = None) -> str:
        """Replace the database of this name by an empty one, or by a copy of another."""
        self._created.add(name)
        with self.connect() as connection:
            _drop(connection, f"freehold_bench_{name}")
            create = sql.SQL("create database {}").format(sql.Identifier(f"freehold_bench_{name}"))
            if template is not None:
                source = sql.Identifier(f"freehold_bench_{template}")
                create += sql.SQL(" template {}").format(source)
            connection.execute(create)
        self.checkpoint()
        return self.database(name)

    def checkpoint(self) -> None:
        """Write everything now, so that no measurement pays for earlier writes; skipped if the role
        may not."""
        refused = contextlib.suppress(psycopg.errors.InsufficientPrivilege)
        with self.connect() as connection, refused:
            connection.execute("checkpoint")

    def vacuum_catalogs(self, url: str) -> None:
        """Set the hint bits of the system catalogs. Otherwise, with checksums, the first session
        does it and writes whole pages of WAL, whose number depends on how tables were created."""
        with self.connect(url) as connection:
            rows = connection.execute(
                "select relname from pg_class "
                "where relkind = 'r' and relnamespace = 'pg_catalog'::regnamespace"
            ).fetchall()
            tables = sql.SQL(", ").join(sql.Identifier("pg_catalog", row[0]) for row in rows)
            connection.execute(sql.SQL("vacuum (freeze) {}").format(tables))

    def count(self, url: str, query: str) -> int:
        return int(self.number(url, query))

    def number(self, url: str, query: str) -> float:
        with self.connect(url) as connection:
            row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return float(row[0])

    def counters(self, url: str) -> Counters:
        """The counters once all sessions of this database have ended."""
        self.wait_for_sessions(url)
        name = conninfo_to_dict(url)["dbname"]
        with self.connect() as connection:
            row = connection.execute(
                "select (pg_current_wal_insert_lsn() - '0/0')::bigint, blks_hit + blks_read, "
                "xact_commit + xact_rollback from pg_stat_database where datname = %s",
                [name],
            ).fetchone()
        assert row is not None
        return Counters(*(int(value) for value in row))

    def wait_for_sessions(self, url: str) -> None:
        name = conninfo_to_dict(url)["dbname"]
        deadline = time.monotonic() + SETTLE_SECONDS
        with self.connect() as connection:
            while time.monotonic() < deadline:
                row = connection.execute(
                    "select count(*) from pg_stat_activity where datname = %s "
                    "and backend_type = 'client backend' and application_name <> %s",
                    [name, OPEN_SESSION],
                ).fetchone()
                if row == (0,):
                    return
                time.sleep(0.05)

    def describe(self) -> dict[str, Any]:
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
            for name in self._created:
                _drop(connection, f"freehold_bench_{name}")


def _drop(connection: Connection[Any], database: str) -> None:
    drop = sql.SQL("drop database if exists {} with (force)")
    connection.execute(drop.format(sql.Identifier(database)))


def _url(parts: dict[str, Any]) -> str:
    """A URL, because the drivers of the peers accept nothing else."""
    known = {key: value for key, value in parts.items() if value is not None}
    host, user = str(known.pop("host", "127.0.0.1")), known.pop("user", None)
    port, name, password = known.pop("port", 5432), known.pop("dbname"), known.pop("password", None)
    login = "" if user is None else f"{user}{'' if password is None else f':{password}'}@"
    if host.startswith("/"):
        return f"postgresql://{login}/{name}?host={host}&port={port}"
    return f"postgresql://{login}{host}:{port}/{name}"


@contextlib.contextmanager
def server(
    url: str | None, settings: Mapping[str, str | int] = MappingProxyType({})
) -> Iterator[Server]:
    """The server at ``url``, or a development server with these settings and else the defaults."""
    if url is not None:
        make_conninfo(url)  # raises now if it is malformed
        with contextlib.closing(Server(url)) as given:
            yield given
        return
    with (
        DevPostgres(settings={"max_connections": 200, **settings}) as own,
        contextlib.closing(Server(own.url)) as started,
    ):
        yield started
