"""Schemas as wholes: what is in them, locking them up, and copying them to another server."""

from __future__ import annotations

from typing import Any

from psycopg import Connection
from psycopg.sql import SQL, Composable, Identifier, Literal

from freehold.errors import StoreError, StoreUnavailable
from freehold.store.movable_shard import MOVER

#: A schema with this remark is being copied to; nobody uses it, and it can be begun anew.
_HALF = "freehold: being copied"
#: How long a lock may be waited for, while others stand behind us.
_LOCK = "500ms"


def exists(connection: Connection[Any], schema: str) -> bool:
    return _query(connection, "select to_regnamespace(%s) is not null", schema)


def is_ours(connection: Connection[Any], schema: str) -> bool:
    """Made by Freehold, or about to be."""
    migrated = _query(connection, "select to_regclass(%s) is not null", f"{schema}.migration")
    return migrated or _is_half(connection, schema)


def is_empty(connection: Connection[Any], schema: str) -> bool:
    return not _query(
        connection,
        "select exists (select from pg_class where relnamespace = to_regnamespace(%s))",
        schema,
    )


def is_used(connection: Connection[Any], schema: str) -> bool:
    """A job was enqueued there at some time."""
    if not _query(connection, "select to_regclass(%s) is not null", f"{schema}.job_id"):
        return False
    query = SQL("select is_called from {}").format(Identifier(schema, "job_id"))
    row = connection.execute(query).fetchone()
    return bool(row and row[0])


def try_lock(connection: Connection[Any], schema: str) -> bool:
    """To the end of the transaction."""
    return _query(
        connection,
        "select pg_try_advisory_xact_lock(hashtextextended(%s, 0))",
        f"freehold move {schema}",
    )


def make(connection: Connection[Any], schema: str) -> None:
    connection.execute(SQL("create schema if not exists {}").format(Identifier(schema)))


def drop(connection: Connection[Any], schema: str) -> None:
    connection.execute(SQL("drop schema if exists {} cascade").format(Identifier(schema)))


def rename(connection: Connection[Any], before: str, after: str) -> None:
    if exists(connection, before):
        connection.execute(
            SQL("alter schema {} rename to {}").format(Identifier(before), Identifier(after))
        )


def retire(connection: Connection[Any], schema: str, left: str) -> bool:
    """Waits for everybody who has written and not committed, and keeps all others out. Who comes
    later finds that the schema is gone."""
    if _is_leased(connection, schema):  # nobody should stand behind a lock that leads to nothing
        return False
    with connection.transaction():
        connection.execute(SQL("set local lock_timeout = {}").format(_LOCK))
        _lock(connection, schema)
        if _is_leased(connection, schema):
            return False
        rename(connection, schema, left)
    return True


def _is_leased(connection: Connection[Any], schema: str) -> bool:
    query = SQL("select exists (select from {} where stage = 'h')")
    row = connection.execute(query.format(Identifier(schema, "job"))).fetchone()
    return bool(row and row[0])


def _lock(connection: Connection[Any], schema: str) -> None:
    names = SQL(", ").join(Identifier(schema, table) for table in _tables(connection, schema))
    connection.execute(SQL("lock table {} in access exclusive mode").format(names))


# -- copying ---------------------------------------------------------------------------------


def is_whole(connection: Connection[Any], schema: str) -> bool:
    return exists(connection, schema) and not _is_half(connection, schema)


def _is_half(connection: Connection[Any], schema: str) -> bool:
    return _query(
        connection,
        "select coalesce(obj_description(to_regnamespace(%s), 'pg_namespace') = %s, false)",
        schema,
        _HALF,
    )


def prepare(connection: Connection[Any], schema: str) -> None:
    """There, and marked as not yet whole, in one step."""
    with connection.transaction():
        make(connection, schema)
        _remark(connection, schema, _HALF)


def copy(reading: Connection[Any], source: str, writing: Connection[Any], schema: str) -> None:
    """Everything or nothing; what is there is whole from then on."""
    with reading.transaction(), writing.transaction():
        reading.execute("set transaction isolation level repeatable read, read only")
        tables = _tables(reading, source)
        if tables != _tables(writing, schema):
            raise StoreError(f"schemas {source} and {schema} differ: migrate the tenant first")
        _lock(writing, schema)
        if not _is_half(writing, schema):
            raise StoreUnavailable("somebody else has copied the tenant meanwhile: try again")
        for table in tables:
            _copy_table(reading, Identifier(source, table), writing, Identifier(schema, table))
        _copy_sequences(reading, source, writing, schema)
        _end_the_movers_pause(writing, schema)
        _remark(writing, schema, None)


def _copy_table(
    reading: Connection[Any], source: Identifier, writing: Connection[Any], goal: Identifier
) -> None:
    columns = _columns(reading, source)
    if columns != _columns(writing, goal):
        raise StoreError(f"{goal.as_string()} has other columns: migrate the tenant first")
    names = SQL(", ").join(map(Identifier, columns))
    # Partitioned tables cannot be copied from, only selected; they can be copied to.
    give = SQL("copy (select {} from {}) to stdout").format(names, source)
    take = SQL("copy {} ({}) from stdin").format(goal, names)
    with (
        reading.cursor() as out,
        writing.cursor() as into,
        out.copy(give) as given,
        into.copy(take) as taken,
    ):
        for block in given:
            taken.write(block)
    sent, stored = _count(reading, source), _count(writing, goal)
    if sent != stored:
        raise StoreError(f"{goal.as_string()} has {stored} rows of {sent}: nothing was moved")


def _count(connection: Connection[Any], table: Identifier) -> int:
    row = connection.execute(SQL("select count(*) from {}").format(table)).fetchone()
    return int(row[0]) if row else 0


def _copy_sequences(
    reading: Connection[Any], source: str, writing: Connection[Any], schema: str
) -> None:
    """Ids and tokens go on where they were: an id is never given twice."""
    rows = reading.execute(
        "select relname from pg_class where relnamespace = to_regnamespace(%s) "
        "and relkind = 'S' order by 1",
        (source,),
    ).fetchall()
    for (name,) in rows:
        query = SQL("select last_value, is_called from {}").format(Identifier(source, name))
        row = reading.execute(query).fetchone()
        assert row is not None
        writing.execute("select setval(%s, %s, %s)", (f"{schema}.{name}", *row))


def _end_the_movers_pause(connection: Connection[Any], schema: str) -> None:
    connection.execute(
        SQL(
            "update {} set paused_at = null, paused_by = null, pause_reason = null, "
            "paused_until = null where name = '*' and paused_by = {}"
        ).format(Identifier(schema, "queue"), MOVER)
    )


def _remark(connection: Connection[Any], schema: str, remark: str | None) -> None:
    text: Composable = SQL("null") if remark is None else Literal(remark)
    connection.execute(SQL("comment on schema {} is {}").format(Identifier(schema), text))


def _tables(connection: Connection[Any], schema: str) -> list[str]:
    """Not the days of history, which their parents stand for."""
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
