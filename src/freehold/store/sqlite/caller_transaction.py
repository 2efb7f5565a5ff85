"""Sessions on a caller's own connection to the file of the jobs: nothing is committed here.

Only Django's connections are taken. They use the `sqlite3` of Python in autocommit, so that a
savepoint is possible at any time. SQLite's own lock keeps such a writer apart from the others; it
does not wait in the queue of `write_lock`, because it may hold SQLite's lock already.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from freehold.store.sqlite.engine import Engine
from freehold.store.statements import Rows, StatementGroup


class SqliteCallerSession:
    """Inside the caller's transaction, or in one of its own if the caller has none."""

    def __init__(self, engine: Engine, connection: sqlite3.Connection) -> None:
        self._engine = engine
        self._connection = connection
        try:
            connection.execute("select clock()")
        except sqlite3.OperationalError:  # no such function
            connection.create_function("clock", 0, engine.clock)

    def execute(self, group: StatementGroup) -> list[Rows]:
        return self._engine.write_on(self._connection, group)


def connection_of_django(connection: Any, path: Path | None) -> sqlite3.Connection | None:
    """The connection of `sqlite3` that this object of Django has open to the file, if it is one."""
    modules = {each.__module__.partition(".")[0] for each in type(connection).__mro__}
    if "django" not in modules or connection.vendor != "sqlite" or path is None:
        return None
    connection.ensure_connection()
    opened: sqlite3.Connection = connection.connection
    for _, name, file in opened.execute("pragma database_list"):
        if name == "main" and file and path.exists() and Path(file).samefile(path):
            return opened
    return None
