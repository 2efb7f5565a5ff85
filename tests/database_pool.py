"""A database with an empty store, which one test after another borrows.

Creating a database and its tables takes a fifth of a second of processor time, emptying one a
twentieth of that, and hundreds of tests need one. After a test that changed more than rows (a
dropped table, a new schema), the next test gets a new database. The schemas of tenants stay, empty
and in no directory, as a creation that died leaves them: the next creation of the same tenant
finds its tables. A schema that was changed is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import psycopg
from psycopg import Connection

from freehold.store.postgres.database import PostgresDatabase
from tests.stores import fresh_database

CONTROL = "freehold"
_TENANT = "freehold_t_"
#: Of each schema, without its own name: the schemas of tenants are like that of the control store.
#: Everything except the partitions of each day, which workers create over time.
_FINGERPRINTS = """
with ours as (
    select n.nspname, c.* from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and not c.relispartition
)
select nspname,
    md5(string_agg(replace(replace(line, nspname, ''), 'freehold', ''), e'\\n' order by line))
from (
    select nspname, format('%s %s %s', relname, relkind, relacl) from ours
    union all
    select nspname, format('%s %s %s %s', relname, attname, atttypid, attnotnull)
    from pg_attribute join ours on ours.oid = attrelid
    where atttypid not in (select reltype from ours)
    union all select nspname, format('%s %s', relname, conname)
    from pg_constraint join ours on ours.oid = conrelid
    union all select nspname, format('%s %s', relname, tgname)
    from pg_trigger join ours on ours.oid = tgrelid
    union all select nspname, format('%s %s', p.oid::regprocedure, prosrc)
    from pg_proc p join pg_namespace n on n.oid = pronamespace where nspname ~ '^freehold'
    union all select nspname, format('%s', nspacl) from pg_namespace where nspname !~ '^pg_'
    union all select 'settings', format('%s', setconfig) from pg_db_role_setting
    where setdatabase = (select oid from pg_database where datname = current_database())
) shape (nspname, line) group by nspname
"""
_MIGRATED = "select schemaname from pg_tables where tablename = 'migration'"
_RELATIONS = """
select c.relkind::text, c.oid::regclass::text from pg_class c
where c.relnamespace = to_regnamespace(%s) and c.relkind in ('r', 'p', 'S')
  and not c.relispartition and c.relname <> 'migration'
"""
#: The statement of a killed worker may still run and would write into the next test.
_TERMINATE_OTHERS = """
select pg_terminate_backend(pid, 5000) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()
"""

Fingerprints = dict[str, str]


class DatabasePool:
    """A pool with one database."""

    def __init__(self, server_url: str) -> None:
        self._server_url = server_url
        self._created = ExitStack()
        self._connection: Connection[Any] | None = None
        self._url: str | None = None
        self._known: Fingerprints = {}

    @contextmanager
    def borrow(self) -> Iterator[str]:
        url = self._url or self._create()
        self._url = None  # until it is empty and its schema is known to be unchanged
        yield url
        assert self._connection is not None
        # An error means that the test removed something that these statements need.
        with suppress(psycopg.Error):
            self._connection.execute(_TERMINATE_OTHERS)
            if clean(self._connection, self._known):
                self._url = url

    def close(self) -> None:
        self._created.close()

    def _create(self) -> str:
        self._created.close()
        url = self._created.enter_context(fresh_database(self._server_url))
        database = PostgresDatabase(url)
        database.migrate()
        database.close()
        self._connection = self._created.enter_context(psycopg.connect(url, autocommit=True))
        self._known = fingerprints(self._connection)
        return url


def fingerprints(connection: Connection[Any]) -> Fingerprints:
    """By schema; with the migrations of Freehold's."""
    found: Fingerprints = dict(connection.execute(_FINGERPRINTS).fetchall())
    for (schema,) in connection.execute(_MIGRATED).fetchall():
        rows = connection.execute(f'select version from "{schema}".migration'.encode()).fetchall()
        found[schema] += f" {sorted(rows)}"
    return found


def clean(connection: Connection[Any], known: Fingerprints) -> bool:
    """Empties the tables of the control store and of tenants. Drops other schemas of ours, and
    tenants whose schema was changed. Returns False if the rest of the database was."""
    found = fingerprints(connection)
    for schema in [name for name in found if name.startswith(f"{CONTROL}_")]:
        if found.pop(schema) == known[CONTROL] and schema.startswith(_TENANT):
            empty(connection, schema)
        else:
            drop_schemas(connection, f"^{schema}$")
    if found != known:
        return False
    empty(connection, CONTROL)
    return True


def drop_schemas(connection: Connection[Any], pattern: str) -> None:
    named = "select nspname from pg_namespace where nspname ~ %s"
    for (schema,) in connection.execute(named, (pattern,)).fetchall():
        connection.execute(f"drop schema {schema} cascade".encode())


def empty(connection: Connection[Any], schema: str) -> None:
    """Not by truncate, which creates new files for every index of every day."""
    relations = connection.execute(_RELATIONS, (schema,)).fetchall()
    statements = [
        f"select setval('{name}', 1, false)" if kind == "S" else f"delete from {name}"
        for kind, name in relations
    ]
    connection.execute(";".join(statements).encode())
