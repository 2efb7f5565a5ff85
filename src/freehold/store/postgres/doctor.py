"""Checks of `freehold doctor` on PostgreSQL."""

from __future__ import annotations

from typing import Any

from psycopg import Connection

from freehold.model.plural import count
from freehold.store.database import Diagnosis

_OLDEST = 140000
_OLD_SNAPSHOT_SECONDS = 300


def diagnose(connection: Connection[Any], schema: str, pending: int) -> list[Diagnosis]:
    return [
        _version(connection),
        Diagnosis(
            "schema", pending == 0, f"schema {schema}: {count(pending, 'migration')} pending"
        ),
        _writable(connection),
        _durable(connection),
        _old_snapshots(connection),
    ]


def _version(connection: Connection[Any]) -> Diagnosis:
    number = connection.info.server_version
    return Diagnosis("version", number >= _OLDEST, f"PostgreSQL {number // 10000}.{number % 10000}")


def _writable(connection: Connection[Any]) -> Diagnosis:
    row = connection.execute("select pg_is_in_recovery()").fetchone()
    standby = bool(row and row[0])
    return Diagnosis("writable", not standby, "a standby takes no writes" if standby else "primary")


def _durable(connection: Connection[Any]) -> Diagnosis:
    off = [
        name
        for name in ("fsync", "full_page_writes")
        if (row := connection.execute(f"show {name}".encode()).fetchone()) and row[0] == "off"
    ]
    detail = f"{', '.join(off)} off: a crash can lose jobs" if off else "fsync on"
    return Diagnosis("durable", not off, detail)


def _old_snapshots(connection: Connection[Any]) -> Diagnosis:
    """Vacuum cannot remove dead rows that an open transaction may still see, in any table."""
    row = connection.execute(
        "select pid, usename, extract(epoch from clock_timestamp() - xact_start)::bigint "
        "from pg_stat_activity where xact_start is not null and pid <> pg_backend_pid() "
        "and backend_type = 'client backend' order by xact_start limit 1"
    ).fetchone()
    if row is None or row[2] < _OLD_SNAPSHOT_SECONDS:
        return Diagnosis("vacuum", True, "no transaction holds back vacuum")
    return Diagnosis(
        "vacuum",
        False,
        f"session {row[0]} of {row[1]} has a transaction open for {row[2]} s and holds back "
        f"vacuum: end it, or select pg_terminate_backend({row[0]})",
    )
