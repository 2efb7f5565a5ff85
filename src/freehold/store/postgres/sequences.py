"""Sequences that are behind their rows.

A restore of tables only, or the promotion of a logical replica, leaves them behind: ids and tokens
would be given twice. Tokens are what external systems compare, so that they must never go back.
"""

from __future__ import annotations

from typing import Any

from psycopg import Connection

from freehold.store.stage_sql import STAGE_NAMES

#: The next number is this much larger than any that is stored: the latest that were given out may
#: not have been restored.
GAP = 1_000_000
#: Finished jobs whose tokens `behind` compares. All rows of history have no index by token.
_RECENT = 1000

_LARGEST = {
    "job_id": "select greatest((select max(id) from {s}.job), (select max(id) from {s}.history))",
    "flow_id": "select max(id) from {s}.flow",
    "event_id": "select max(id) from {s}.event",
    "lease_token": "select greatest((select max(lease_token) from {s}.job where stage = {leased}), "
    "(select max(token) from (select token from {s}.history order by id desc limit {n}) h), "
    "(select max(token) from (select token from {s}.event order by id desc limit {n}) e))",
}
_LARGEST_TOKEN = (
    "select greatest((select max(lease_token) from {s}.job), (select max(token) from {s}.history), "
    "(select max(token) from {s}.event), (select max(token) from {s}.job_log))"
)


def are_readable(connection: Connection[Any], schema: str) -> bool:
    names = [f"{schema}.{name}" for name in _LARGEST]
    row = connection.execute(
        "select bool_and(has_sequence_privilege(name, 'select')) from unnest(%s::text[]) name",
        (names,),
    ).fetchone()
    return bool(row and row[0])


def behind(connection: Connection[Any], schema: str) -> list[str]:
    """The names of the sequences whose next number is not larger than all of a stored row."""
    return [
        name
        for name, largest in _LARGEST.items()
        if _next(connection, schema, name) <= _largest(connection, schema, largest)
    ]


def advance(connection: Connection[Any], schema: str) -> None:
    """If one is behind, all of them are moved beyond the rows. None is ever moved back."""
    if not are_readable(connection, schema) or not behind(connection, schema):
        return
    for name, largest in (_LARGEST | {"lease_token": _LARGEST_TOKEN}).items():
        stored = _largest(connection, schema, largest)
        goal = max(_next(connection, schema, name), stored) + GAP
        connection.execute(f"select setval('{schema}.{name}', {goal})".encode())


def _next(connection: Connection[Any], schema: str, sequence: str) -> int:
    text = f"select last_value + is_called::integer from {schema}.{sequence}"
    row = connection.execute(text.encode()).fetchone()
    return int(row[0]) if row is not None else 0


def _largest(connection: Connection[Any], schema: str, sql: str) -> int:
    row = connection.execute(
        sql.format(s=schema, n=_RECENT, leased=STAGE_NAMES["leased"]).encode()
    ).fetchone()
    return int(row[0] or 0) if row is not None else 0
