"""Checks of `freehold doctor` on PostgreSQL."""

from __future__ import annotations

from typing import Any

from psycopg import Connection

from freehold.model.plural import count
from freehold.store.database import Diagnosis
from freehold.store.postgres import sequences

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
        _foreign_locks(connection, schema),
        *([_sequences(connection, schema), _timeline(connection, schema)] if pending == 0 else []),
    ]


def _version(connection: Connection[Any]) -> Diagnosis:
    number = connection.info.server_version
    return Diagnosis("version", number >= _OLDEST, f"PostgreSQL {number // 10000}.{number % 10000}")


def _writable(connection: Connection[Any]) -> Diagnosis:
    row = connection.execute(
        "select pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on', "
        "current_user"
    ).fetchone()
    standby, read_only, user = row or (False, False, "")
    if standby:
        return Diagnosis("writable", False, "a standby takes no writes: connect to the primary")
    if read_only:
        return Diagnosis(
            "writable",
            False,
            f"default_transaction_read_only is on for {user}: reset it for the role, the database "
            "or the server",
        )
    return Diagnosis("writable", True, "primary")


def _durable(connection: Connection[Any]) -> Diagnosis:
    off = [
        name
        for name in ("fsync", "full_page_writes")
        if (row := connection.execute(f"show {name}".encode()).fetchone()) and row[0] == "off"
    ]
    if off:
        return Diagnosis("durable", False, f"{', '.join(off)} off: a crash can lose jobs")
    return Diagnosis("durable", True, f"fsync on; {_replication(connection)}")


def _replication(connection: Connection[Any]) -> str:
    names = connection.execute("show synchronous_standby_names").fetchone()
    standbys = connection.execute("select count(*) from pg_stat_replication").fetchone()
    if names is not None and names[0]:
        return "synchronous replication"
    if standbys is not None and standbys[0]:
        return "asynchronous replication: a fail-over can lose the latest jobs"
    return "no standby"


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


def _foreign_locks(connection: Connection[Any], schema: str) -> Diagnosis:
    """Advisory locks have no owner: any role of the database can hold those of the schema. Only the
    locks that stop a whole schema are looked up; those of lanes and keys have too many names."""
    names = [
        f"leases of {schema}",
        f"{schema}.rotate_partitions",
        f"{schema}.server_timeline",
        f"freehold migrate {schema}",
    ]
    row = connection.execute(
        "select a.pid, a.usename from pg_locks l join pg_stat_activity a using (pid) "
        "where l.locktype = 'advisory' and l.granted and l.objsubid = 1 "
        "and l.database = (select oid from pg_database where datname = current_database()) "
        "and (l.classid::bigint << 32) | l.objid::bigint in "
        "(select hashtextextended(name, 0) from unnest(%s::text[]) name) "
        "and not has_schema_privilege(a.usesysid, to_regnamespace(%s)::oid, 'usage') "
        "order by a.pid limit 1",
        (names, schema),
    ).fetchone()
    if row is None:
        return Diagnosis("locks", True, "no other program holds locks of the schema")
    return Diagnosis(
        "locks",
        False,
        f"session {row[0]} of {row[1]}, a role without privileges on the schema, holds one of its "
        f"locks: select pg_terminate_backend({row[0]}), and let only Freehold's users connect",
    )


def _sequences(connection: Connection[Any], schema: str) -> Diagnosis:
    if not sequences.are_readable(connection, schema):
        return Diagnosis("sequences", True, "not checked: this role may not read them")
    names = sequences.behind(connection, schema)
    detail = (
        f"{', '.join(names)} behind the stored rows: run freehold migrate, or ids and tokens are "
        "given twice"
    )
    return Diagnosis("sequences", not names, detail if names else "ahead of all stored rows")


def _timeline(connection: Connection[Any], schema: str) -> Diagnosis:
    row = connection.execute(f"select {schema}.present_timeline()".encode()).fetchone()
    if row is not None and row[0] is not None:
        return Diagnosis(
            "timeline", True, f"timeline {row[0]}: ids and tokens move on with a promotion"
        )
    return Diagnosis(
        "timeline",
        True,
        "not reported by this server: after the promotion of a standby without the latest commits, "
        f"run select {schema}.advance_sequences() as the owner before workers and producers start, "
        "or ids and tokens are given twice",
    )
