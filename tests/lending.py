"""A database with an empty store, lent to one test after the other.

To make one takes a third of a second, to empty one a tenth of that, and hundreds of tests ask. Who
changes more in it than rows (drops a table, makes a schema) uses it up: the next gets a new one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import psycopg
from psycopg import Connection

from freehold.store.postgres.database import PostgresDatabase
from tests.stores import fresh_database

#: Everything but the partitions of a day, which workers make as time goes on.
_SHAPE = """
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
#: A killed worker's statement may still run, and would write into the next test.
_OTHERS_GO = """
select pg_terminate_backend(pid, 5000) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()
"""


class Lending:
    """One database at a time."""

    def __init__(self, server_url: str) -> None:
        self._server_url = server_url
        self._made = ExitStack()
        self._url: str | None = None
        self._shape: object = None

    @contextmanager
    def lent(self) -> Iterator[str]:
        url = self._url or self._make()
        self._url = None  # until it is known to be as good as new
        yield url
        # An error: something is gone that the questions are about.
        with suppress(psycopg.Error), psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_OTHERS_GO)
            if _first(connection, _SHAPE) == [self._shape]:
                _empty(connection)
                self._url = url

    def close(self) -> None:
        self._made.close()

    def _make(self) -> str:
        self._made.close()
        url = self._made.enter_context(fresh_database(self._server_url))
        database = PostgresDatabase(url)
        database.migrate()
        database.close()
        with psycopg.connect(url) as connection:
            (self._shape,) = _first(connection, _SHAPE)
        return url


def _empty(connection: Connection[Any]) -> None:
    tables, sequences = _first(connection, _TABLES), _first(connection, _SEQUENCES)
    # Not truncate, which makes new files for every index of every day.
    statements = [f"delete from {table}" for table in tables]
    statements += [f"select setval('{sequence}', 1, false)" for sequence in sequences]
    connection.execute(";".join(statements).encode())


def _first(connection: Connection[Any], query: str) -> list[object]:
    return [row[0] for row in connection.execute(query.encode()).fetchall()]
