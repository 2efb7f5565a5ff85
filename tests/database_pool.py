"""A database with an empty store, which one test after another borrows.

Creating a database takes a third of a second and emptying one a tenth of that, for hundreds of
tests. After a test that changed more than rows (a dropped table, a new schema), the next test gets
a new database.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import psycopg
from psycopg import Connection

from freehold.store.postgres.database import PostgresDatabase
from tests.stores import fresh_database

#: Everything except the partitions of each day, which workers create over time.
_SCHEMA_FINGERPRINT = """
with ours as (
    select c.* from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and not c.relispartition
)
select md5(string_agg(line, e'\\n' order by line)) from (
    select format('%s %s %s', oid::regclass, relkind, relacl) from ours
    union all
    select format('%s %s %s %s', attrelid, attname, atttypid, attnotnull)
    from pg_attribute join ours on ours.oid = attrelid
    union all select format('%s %s', conrelid, conname)
    from pg_constraint join ours on ours.oid = conrelid
    union all select format('%s %s', tgrelid, tgname)
    from pg_trigger join ours on ours.oid = tgrelid
    union all select format('%s %s', p.oid::regprocedure, md5(prosrc))
    from pg_proc p where pronamespace = to_regnamespace('freehold')
    union all select format('%s %s', nspname, nspacl) from pg_namespace where nspname !~ '^pg_'
    union all select format('%s', setconfig) from pg_db_role_setting
    where setdatabase = (select oid from pg_database where datname = current_database())
    union all select m::text from freehold.migration m
) shape (line)
"""
_TABLES = """
select c.oid::regclass::text from pg_class c
where c.relnamespace = to_regnamespace('freehold') and c.relkind in ('r', 'p')
  and not c.relispartition and c.relname <> 'migration'
"""
_SEQUENCES = """
select c.oid::regclass::text from pg_class c
where c.relnamespace = to_regnamespace('freehold') and c.relkind = 'S'
"""
#: The statement of a killed worker may still run and would write into the next test.
_TERMINATE_OTHERS = """
select pg_terminate_backend(pid, 5000) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()
"""


class DatabasePool:
    """A pool with one database."""

    def __init__(self, server_url: str) -> None:
        self._server_url = server_url
        self._created = ExitStack()
        self._url: str | None = None
        self._schema: object = None

    @contextmanager
    def borrow(self) -> Iterator[str]:
        url = self._url or self._create()
        self._url = None  # until it is empty and its schema is known to be unchanged
        yield url
        # An error means that the test removed something that these statements need.
        with suppress(psycopg.Error), psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_TERMINATE_OTHERS)
            if _first_column(connection, _SCHEMA_FINGERPRINT) == [self._schema]:
                _empty(connection)
                self._url = url

    def close(self) -> None:
        self._created.close()

    def _create(self) -> str:
        self._created.close()
        url = self._created.enter_context(fresh_database(self._server_url))
        database = PostgresDatabase(url)
        database.migrate()
        database.close()
        with psycopg.connect(url) as connection:
            (self._schema,) = _first_column(connection, _SCHEMA_FINGERPRINT)
        return url


def _empty(connection: Connection[Any]) -> None:
    tables, sequences = _first_column(connection, _TABLES), _first_column(connection, _SEQUENCES)
    # Not truncate, which creates new files for every index of every day.
    statements = [f"delete from {table}" for table in tables]
    statements += [f"select setval('{sequence}', 1, false)" for sequence in sequences]
    connection.execute(";".join(statements).encode())


def _first_column(connection: Connection[Any], query: str) -> list[object]:
    return [row[0] for row in connection.execute(query.encode()).fetchall()]
