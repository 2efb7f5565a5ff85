"""Transactions on one SQLite file, by any number of threads and processes.

Writers queue up (see `write_lock`), because SQLite's own busy handler polls and lets processes
starve.

Time stands still within a transaction: all its statements see the same instant.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from freehold.clock import Micros
from freehold.errors import SchemaMissing, StoreUnavailable
from freehold.fork_safety import ForkAware, notice_forks
from freehold.model.timestamps import micros_of
from freehold.store.sqlite.errors import Translating
from freehold.store.sqlite.write_lock import LoopLock, WriteLock
from freehold.store.statements import Rows, Statement, StatementGroup

_BUSY_SECONDS = 30.0
#: How long a fork, or close(), waits for an open transaction of another thread.
_LOCK_TIMEOUT_SECONDS = 2.0
#: The jobs that a claim examines, and its decisions. Each connection has its own table, in memory.
_CREATE_CANDIDATE = """create temp table candidate (
    id integer primary key, priority integer, limit_key text, may_run integer,
    lane_is_paused integer, key_room integer, never_ahead integer, known integer,
    won integer default 0)"""

#: By these a file is known as a store.
_OUR_TABLES = frozenset({"job", "history", "event", "counter"})

#: Types of most values, which are bound as they are.
_PLAIN = frozenset({str, int, float, bool, type(None)})
#: Connections of a parent that was writing at the fork: never used, never closed.
_parents_connections: list[sqlite3.Connection] = []


class Script(msgspec.Struct, frozen=True):
    """A statement of several parts, executed in order for each row of its set.

    ``takes_whole_set``: once, with the set as ``:rows``. ``is_notified``: listeners must know of
    the change. If ``candidates`` finds no row, only the last part follows.
    """

    parts: list[str]
    takes_whole_set: bool
    is_notified: bool
    candidates: str | None


class _Handle:
    """A connection, the lock around its use, and the instant that its statements see."""

    def __init__(self, path: Path | None, must_exist: bool, clock: Micros) -> None:
        self.lock = threading.RLock()
        self._clock = clock
        self._now: int | None = None
        self._path = path
        self.must_exist = must_exist
        #: May the tables be created in a file of another program?
        self.may_adopt = False
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None

    def new_instant(self) -> None:
        """The clock is read by the first statement that asks for the time. By then the statement
        has its snapshot, so that no time in it lies ahead."""
        self._now = None

    def _instant(self) -> int:
        if self._now is None:
            self._now = self._clock()
        return self._now

    def connection(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
            self._file = _identity(self._path)
        return self._connection

    def close_if_replaced(self) -> bool:
        """If the path no longer names the file of the connection: SQLite would write on into the
        removed one. SQLite itself notices on close, and leaves the log of the new file alone."""
        if self._connection is None or _identity(self._path) == self._file:
            return False
        self._connection.close()
        self._connection = None
        return True

    @property
    def is_writing(self) -> bool:
        return self._connection is not None and self._connection.in_transaction

    def after_fork_in_child(self) -> None:
        """A connection that the parent could not close must not be closed here."""
        self.lock = threading.RLock()
        if self._connection is not None:
            _parents_connections.append(self._connection)
        self._connection = None

    def _connect(self) -> sqlite3.Connection:
        if self._path is not None and not self.must_exist:
            create_private(self._path)
        connection = sqlite3.connect(
            ":memory:" if self._path is None else existing(self._path),
            uri=True,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.create_function("clock", 0, self._instant)
            if self._path is not None:
                if not self.may_adopt and is_foreign(connection):
                    raise _foreign(self._path)
                _use_write_ahead_log(connection, self._path)
                connection.execute("pragma synchronous = full")
            connection.execute("pragma temp_store = memory")
            connection.execute(_CREATE_CANDIDATE)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self, also: Callable[[], None] = lambda: None) -> None:
        """A connection that another thread uses for too long stays open until the process ends."""
        if not self.lock.acquire(timeout=_LOCK_TIMEOUT_SECONDS):
            return
        try:
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            also()
        finally:
            self.lock.release()


class Engine(ForkAware):
    """The connections of one process to the file. Thread-safe."""

    def __init__(
        self,
        path: Path | None,
        scripts: dict[str, Script],
        clock: Micros,
        on_change: Callable[[], None],
        *,
        must_exist: bool = False,
    ) -> None:
        self.path = path
        self.clock = clock
        self._scripts = scripts
        self._on_change = on_change
        self._writer = _Handle(path, must_exist, clock)
        # Readers of a file have a connection of their own, so that they wait for no fsync.
        self._reader = _Handle(path, must_exist, clock) if path is not None else self._writer
        self._write_lock = WriteLock(path) if path is not None else None
        self._translating = Translating(path)
        self._is_tenant = must_exist
        self._reported: tuple[int, int] | None = None
        self.loop_lock = LoopLock()
        notice_forks(self)

    # -- executing ---------------------------------------------------------------------------

    def write(self, groups: Sequence[StatementGroup]) -> list[list[Rows] | Exception]:
        """Several groups in one durable transaction, each succeeding or failing by itself."""
        if len(groups) == 1 and not groups[0].is_trial:
            return [self._write_one(groups[0])]
        with self.transaction() as connection:
            before = connection.total_changes
            results = [self._in_savepoint(connection, group) for group in groups]
            changed = connection.total_changes != before
        if changed and any(map(self._is_notified, groups)):
            self._on_change()
        return results

    def _write_one(self, group: StatementGroup) -> list[Rows] | Exception:
        """A single group needs no savepoint: its error rolls back the transaction."""
        try:
            with self.transaction() as connection:
                before = connection.total_changes
                results = [self._execute(connection, each) for each in group.statements]
                changed = connection.total_changes != before
        except Exception as error:
            return error
        if changed and self._is_notified(group):
            self._on_change()
        return results

    def read(self, group: StatementGroup) -> list[Rows]:
        """Reads see the last commit, and wait for no writer."""
        with self._reader.lock, self._translating:
            self._check_file(self._reader)
            connection = self._reader.connection()
            self._reader.new_instant()
            return [self._execute(connection, each) for each in group.statements]

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Under the write lock, from BEGIN to COMMIT."""
        write_lock = self._write_lock or contextlib.nullcontext()
        with self._writer.lock, self._translating:
            self._check_file(self._writer)
            connection = self._writer.connection()
            with write_lock:
                connection.execute("begin immediate")
                self._writer.new_instant()
                try:
                    yield connection
                    connection.execute("commit")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("rollback")
                    raise

    def _check_file(self, handle: _Handle) -> None:
        """Raises an error once if the file was replaced, so that it is known; later calls use the
        new one. A tenant's file is replaced by moves, which `TenantDatabase` follows."""
        if not handle.close_if_replaced():
            return
        if handle is self._writer and self._write_lock is not None:
            self._write_lock.close()
        present = _identity(self.path)
        if present in (None, self._reported) or self._is_tenant:
            return
        self._reported = present
        raise StoreUnavailable(
            f"the store {self.path} was replaced by another file while in use; the new file is "
            "opened: try again"
        )

    def write_within(self, connection: sqlite3.Connection, group: StatementGroup) -> list[Rows]:
        """In the handler's transaction, which is open already, at the present instant."""
        self._writer.new_instant()
        return self.write_on(connection, group)

    def write_on(self, connection: sqlite3.Connection, group: StatementGroup) -> list[Rows]:
        """In a savepoint of any connection to the file."""
        result = self._in_savepoint(connection, group)
        if isinstance(result, Exception):
            raise result
        return result

    def notify_changed(self) -> None:
        self._on_change()

    def _in_savepoint(
        self, connection: sqlite3.Connection, group: StatementGroup
    ) -> list[Rows] | Exception:
        connection.execute("savepoint statement_group")
        try:
            with self._translating:
                results = [self._execute(connection, each) for each in group.statements]
        except Exception as error:  # the other groups of the transaction are not affected
            if not connection.in_transaction:  # SQLite itself has rolled back all of it
                raise
            connection.execute("rollback to statement_group")
            connection.execute("release statement_group")
            return error
        if group.is_trial:
            connection.execute("rollback to statement_group")
        connection.execute("release statement_group")
        return results

    def _execute(self, connection: sqlite3.Connection, statement: Statement) -> Rows:
        script = self._scripts[statement.name]
        params = _bound_all(statement.params)
        found: Rows = []
        rows = statement.rows if statement.rows is not None else ({},)
        if script.takes_whole_set:
            rows = ({"rows": [_bound_all(row) for row in rows]},)
        for row in rows:
            values = params | _bound_all(row)
            for sql in script.parts:
                cursor = connection.execute(sql, values)
                try:
                    found += cursor.fetchall()
                except sqlite3.Error:  # an open statement would keep its savepoint from ending
                    cursor.close()
                    raise
                if cursor.rowcount == 0 and sql is script.candidates:
                    found += connection.execute(script.parts[-1], values).fetchall()
                    break
        return found

    def _is_notified(self, group: StatementGroup) -> bool:
        return any(self._scripts[each.name].is_notified for each in group.statements)

    def create_no_more(self) -> None:
        """The file exists: if it is removed later, no other is created in its place."""
        self._reader.must_exist = self._writer.must_exist = True

    def adopt(self) -> None:
        """From now on the file may be one of another program."""
        self._reader.may_adopt = self._writer.may_adopt = True

    def user_version(self) -> int:
        with self._reader.lock, self._translating:
            return int(self._reader.connection().execute("pragma user_version").fetchone()[0])

    def integrity(self) -> tuple[bool, str]:
        with self._reader.lock, self._translating:
            result = str(self._reader.connection().execute("pragma quick_check(1)").fetchone()[0])
        return result == "ok", result

    def close(self) -> None:
        self._reader.close()
        lock = self._write_lock
        self._writer.close(also=lock.close if lock is not None else lambda: None)

    # -- forks -------------------------------------------------------------------------------

    def before_fork(self) -> bool:
        if not self._writer.lock.acquire(timeout=_LOCK_TIMEOUT_SECONDS):
            return False
        if not self._reader.lock.acquire(timeout=_LOCK_TIMEOUT_SECONDS):
            self._writer.lock.release()
            return False
        try:
            if self.path is not None and not self._writer.is_writing:
                self.close()
        except BaseException:
            self.after_fork_in_parent()
            raise
        return True

    def after_fork_in_parent(self) -> None:
        self._reader.lock.release()
        self._writer.lock.release()

    def after_fork_in_child(self) -> None:
        self._reader.after_fork_in_child()
        self._writer.after_fork_in_child()


def create_private(path: Path) -> None:
    """Jobs contain private data: only the owner may read the file."""
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, stat.S_IRUSR | stat.S_IWUSR))


def existing(path: Path) -> str:
    """A URI that never creates a file."""
    return f"file:{quote(os.fsencode(path))}?mode=rw"


def _identity(path: Path | None) -> tuple[int, int] | None:
    """Of the file that the path names now; None: there is none, or it is in memory."""
    if path is None:
        return None
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def is_foreign(connection: sqlite3.Connection) -> bool:
    """The file has tables, but not those of a store: it is of another program, or of a tenant that
    was moved away."""
    rows = connection.execute("select name from sqlite_master where type = 'table'")
    tables = {name for (name,) in rows}
    return bool(tables) and not tables >= _OUR_TABLES


def _foreign(path: Path) -> SchemaMissing:
    return SchemaMissing(
        f"the store {path} has tables, but no Freehold schema: choose another file, or add the "
        "schema to this one with `freehold migrate`"
    )


def _use_write_ahead_log(connection: sqlite3.Connection, path: Path) -> None:
    """SQLite does not wait while another process changes the mode of a new file: lock it here."""
    if connection.execute("pragma journal_mode").fetchone()[0] == "wal":
        return
    write_lock = WriteLock(path)
    try:
        with write_lock:
            connection.execute("pragma journal_mode = wal")
    finally:
        write_lock.close()


def _bound_all(values: Mapping[str, Any]) -> dict[str, Any]:
    """In types that SQLite can bind, which most values have already."""
    return {
        name: value if type(value) in _PLAIN else _bound(value) for name, value in values.items()
    }


def _bound(value: Any) -> Any:
    if isinstance(value, datetime):
        return micros_of(value)
    if isinstance(value, list | tuple):
        return msgspec.json.encode(value).decode()
    return value
