"""Queries on the system catalog: the parts of a schema, and waiting backends."""

from __future__ import annotations

import re
from typing import Any

from psycopg import Connection

#: Backends that wait for a lock in this database; other tests use others on the same server.
WAITING = """
    from pg_locks join pg_database d on d.oid = database
    where not granted and d.datname = current_database()"""

_PARTS = {
    "column": """
        select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
               a.attstattarget, pg_get_expr(d.adbin, d.adrelid)
        from pg_attribute a join pg_class c on c.oid = a.attrelid
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where c.relnamespace = {schema}::regnamespace and a.attnum > 0 and not a.attisdropped""",
    "table": """
        select relname, relkind, reloptions, pg_get_expr(relpartbound, oid)
        from pg_class where relnamespace = {schema}::regnamespace""",
    "index": "select indexname, indexdef from pg_indexes where schemaname = {schema}",
    "constraint": """
        select conrelid::regclass::text, conname, pg_get_constraintdef(oid)
        from pg_constraint where connamespace = {schema}::regnamespace""",
    "function": """
        select proname, pg_get_functiondef(oid)
        from pg_proc where pronamespace = {schema}::regnamespace""",
    "migration": "select version, name from {name}.migration",
}


def catalog(connection: Connection[Any], schema: str) -> set[str]:
    """Every part of the schema, as a line of text."""
    parts: set[str] = set()
    for kind, query in _PARTS.items():
        text = query.format(schema=f"'{schema}'", name=schema)
        for row in connection.execute(text.encode()):
            # Also in the name of its channel.
            parts.add(re.sub(rf"(\b|(?<=\bfreehold_)){schema}\b", "SCHEMA", f"{kind} {row}"))
    assert len(parts) > 100
    return parts
