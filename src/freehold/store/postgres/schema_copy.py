"""Whole schemas: inspecting, retiring and copying them to another server."""

from __future__ import annotations

from typing import Any

from psycopg import Connection
from psycopg.sql import SQL, Identifier, Literal

from freehold.errors import StoreError
from freehold.model.state import Stage
from freehold.store.stage_sql import stage_byte

#: Other statements on the tables wait behind this lock request, so it must be short.
_LOCK_TIMEOUT = "500ms"


def exists(connection: Connection[Any], schema: str) -> bool:
    return _query(connection, "select to_regnamespace(%s) is not null", schema)


def is_ours(connection: Connection[Any], schema: str) -> bool:
    """Made by Freehold."""
    return _query(connection, "select to_regclass(%s) is not null", f"{schema}.migration")


def is_empty(connection: Connection[Any], schema: str) -> bool:
    return not _query(
        connection,
        "select exists (select from pg_class where relnamespace = to_regnamespace(%s))",
        schema,
    )


def is_used(connection: Connection[Any], schema: str) -> bool:
    """A job was enqueued there at some time, or there is a schedule."""
    if _has_rows(connection, schema, "schedule"):
        return True
    if not _query(connection, "select to_regclass(%s) is not null", f"{schema}.job_id"):
        return False
    query = SQL("select is_called from {}").format(Identifier(schema, "job_id"))
    row = connection.execute(query).fetchone()
    return bool(row and row[0])


def try_lock(connection: Connection[Any], schema: str) -> bool:
    """Until the end of the transaction."""
    return _query(
        connection,
        "select pg_try_advisory_xact_lock(hashtextextended(%s, 0))",
        f"freehold move {schema}",
    )


def create(connection: Connection[Any], schema: str) -> None:
    connection.execute(SQL("create schema if not exists {}").format(Identifier(schema)))


def drop(connection: Connection[Any], schema: str) -> None:
    connection.execute(SQL("drop schema if exists {} cascade").format(Identifier(schema)))


def drop_if_empty(connection: Connection[Any], schema: str) -> bool:
    """False, and nothing done, if there is a live job or a schedule. Waits for open transactions
    that have written one; later ones wait, and then find no table."""
    with connection.transaction():
        if not _query(connection, "select to_regclass(%s) is null", f"{schema}.job"):
            connection.execute(SQL("set local lock_timeout = {}").format(_LOCK_TIMEOUT))
            _lock(connection, schema)
            if _has_rows(connection, schema, "job") or _has_rows(connection, schema, "schedule"):
                return False
        drop(connection, schema)
    return True


def _has_rows(connection: Connection[Any], schema: str, table: str) -> bool:
    """False also if there is no such table, as in a schema that is not migrated yet."""
    if _query(connection, "select to_regclass(%s) is null", f"{schema}.{table}"):
        return False
    query = SQL("select exists (select from {})").format(Identifier(schema, table))
    row = connection.execute(query).fetchone()
    return bool(row and row[0])


def rename(connection: Connection[Any], before: str, after: str) -> None:
    if exists(connection, before):
        connection.execute(
            SQL("alter schema {} rename to {}").format(Identifier(before), Identifier(after))
        )


def retire(connection: Connection[Any], schema: str, retired: str) -> bool:
    """Waits for open transactions that have written, and blocks all others. Later statements find
    no such schema."""
    if _is_leased(connection, schema):  # do not block statements for a lock that is of no use
        return False
    with connection.transaction():
        connection.execute(SQL("set local lock_timeout = {}").format(_LOCK_TIMEOUT))
        _lock(connection, schema)
        if _is_leased(connection, schema):
            return False
        rename(connection, schema, retired)
    return True


def _is_leased(connection: Connection[Any], schema: str) -> bool:
    query = SQL("select exists (select from {} where stage = {})")
    leased = Literal(stage_byte(Stage.LEASED))
    row = connection.execute(query.format(Identifier(schema, "job"), leased)).fetchone()
    return bool(row and row[0])


def _lock(connection: Connection[Any], schema: str) -> None:
    names = SQL(", ").join(Identifier(schema, table) for table in _tables(connection, schema))
    connection.execute(SQL("lock table {} in access exclusive mode").format(names))


# -- copying ---------------------------------------------------------------------------------


def copy(reading: Connection[Any], source: str, writing: Connection[Any], schema: str) -> None:
    """All rows and counters, or nothing."""
    with reading.transaction(), writing.transaction():
        reading.execute("set transaction isolation level repeatable read, read only")
        tables = _tables(reading, source)
        if tables != _tables(writing, schema):
            raise StoreError(f"schemas {source} and {schema} differ: migrate the tenant first")
        for table in tables:
            _copy_table(reading, Identifier(source, table), writing, Identifier(schema, table))
        _copy_sequences(reading, source, writing, schema)


def _copy_table(
    reading: Connection[Any], source: Identifier, writing: Connection[Any], goal: Identifier
) -> None:
    columns = _columns(reading, source)
    if columns != _columns(writing, goal):
        raise StoreError(f"{goal.as_string()} has other columns: migrate the tenant first")
    names = SQL(", ").join(map(Identifier, columns))
    # COPY cannot read from a partitioned table, only from a query on it; it can write to one.
    copy_out = SQL("copy (select {} from {}) to stdout").format(names, source)
    copy_in = SQL("copy {} ({}) from stdin").format(goal, names)
    with (
        reading.cursor() as read_cursor,
        writing.cursor() as write_cursor,
        read_cursor.copy(copy_out) as blocks,
        write_cursor.copy(copy_in) as target,
    ):
        for block in blocks:
            target.write(block)
    sent, stored = _count(reading, source), _count(writing, goal)
    if sent != stored:
        raise StoreError(f"{goal.as_string()} has {stored} rows of {sent}: nothing was moved")


def _count(connection: Connection[Any], table: Identifier) -> int:
    row = connection.execute(SQL("select count(*) from {}").format(table)).fetchone()
    return int(row[0]) if row else 0


def _copy_sequences(
    reading: Connection[Any], source: str, writing: Connection[Any], schema: str
) -> None:
    """Ids and tokens continue where they were: an id is never used twice. The timeline is that of
    the other server."""
    rows = reading.execute(
        "select relname from pg_class where relnamespace = to_regnamespace(%s) "
        "and relkind = 'S' and relname <> 'server_timeline' order by 1",
        (source,),
    ).fetchall()
    for (name,) in rows:
        query = SQL("select last_value, is_called from {}").format(Identifier(source, name))
        row = reading.execute(query).fetchone()
        assert row is not None
        writing.execute("select setval(%s, %s, %s)", (f"{schema}.{name}", *row))


def _tables(connection: Connection[Any], schema: str) -> list[str]:
    """Without partitions, which are copied through their parents."""
    rows = connection.execute(
        "select relname from pg_class where relnamespace = to_regnamespace(%s) "
        "and relkind in ('r', 'p') and not relispartition and relname <> 'migration' order by 1",
        (schema,),
    ).fetchall()
    return [name for (name,) in rows]


def _columns(connection: Connection[Any], table: Identifier) -> list[str]:
    rows = connection.execute(
        "select attname from pg_attribute where attrelid = to_regclass(%s) and attnum > 0 "
        "and not attisdropped order by attname",
        (table.as_string(),),
    ).fetchall()
    return [name for (name,) in rows]


def _query(connection: Connection[Any], query: str, *values: str) -> bool:
    row = connection.execute(query.encode(), values).fetchone()
    return bool(row and row[0])
