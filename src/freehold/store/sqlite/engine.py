"""Transactions on one SQLite file, by any number of threads and processes.

Writers take turns (see `turns`), because SQLite's own waiting is polling and lets processes
starve.

Time stands still within a transaction: all its statements judge by the same instant.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from freehold.clock import Micros
from freehold.errors import SchemaMissing, StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from freehold.store.rows import micros_of
from freehold.store.sqlite.fork_hooks import survives_forks
from freehold.store.sqlite.write_lock import LoopLock, WriteLock
from freehold.store.statements import Conflict, Rows, Statement, StatementGroup

_BUSY_SECONDS = 30.0
#: How long a fork, or the end, waits for an open transaction of another thread.
_PATIENCE_SECONDS = 2.0
#: What makes nothing ready, and asks nothing of anybody.
_QUIET = frozenset({"renew", "start", "beat", "leave"})
#: What a claim has looked at, and thinks of it. Each connection has its own, in memory.
_LOOKED_AT = """create temp table looked (
    id integer primary key, priority integer, limit_key text, goes integer, stopped integer,
    key_room integer, careful integer, known integer, won integer default 0)"""

#: What most values are, and is bound as it is.
_PLAIN = frozenset({str, int, float, bool, type(None)})
#: Where this finds nothing, most of the time, the claim has nothing to do but to say so.
_LOOKS = "insert into looked"

#: Connections of a parent that was writing when we were forked: never used, never closed.
_of_parents: list[sqlite3.Connection] = []


class _Handle:
    """A connection, the lock around its use, and the instant that its statements see."""

    def __init__(self, path: Path | None, must_exist: bool) -> None:
        self.lock = threading.RLock()
        self.now = 0
        self._path = path
        self._must_exist = must_exist
        self._connection: sqlite3.Connection | None = None

    def connection(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    @property
    def is_writing(self) -> bool:
        return self._connection is not None and self._connection.in_transaction

    def begin_anew(self) -> None:
        """In a forked child. A connection that the parent could not close is not ours to close."""
        self.lock = threading.RLock()
        if self._connection is not None:
            _of_parents.append(self._connection)
        self._connection = None

    def _connect(self) -> sqlite3.Connection:
        if self._path is not None and not self._must_exist:
            create_private(self._path)
        connection = sqlite3.connect(
            ":memory:" if self._path is None else existing(self._path),
            uri=True,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.create_function("clock", 0, lambda: self.now)
            if self._path is not None:
                _use_write_ahead_log(connection, self._path)
                connection.execute("pragma synchronous = full")
            connection.execute("pragma temp_store = memory")
            connection.execute(_LOOKED_AT)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self, also: Callable[[], None] = lambda: None) -> None:
        """What another thread is busy with for too long stays open, and ends with the process."""
        if not self.lock.acquire(timeout=_PATIENCE_SECONDS):
            return
        try:
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            also()
        finally:
            self.lock.release()


class Engine:
    """One process's way to the file. Thread-safe."""

    def __init__(
        self,
        path: Path | None,
        scripts: dict[str, list[str]],
        clock: Micros,
        changed: Callable[[], None],
        *,
        must_exist: bool = False,
    ) -> None:
        self.path = path
        self._scripts = scripts
        self._clock = clock
        self._changed = changed
        self._writer = _Handle(path, must_exist)
        # Readers of a file have a connection of their own and wait for no fsync.
        self._reader = _Handle(path, must_exist) if path is not None else self._writer
        self._turns = WriteLock(path) if path is not None else None
        self.loop_turn = LoopLock()
        survives_forks(self)

    # -- executing ---------------------------------------------------------------------------

    def write(self, batches: Sequence[StatementGroup]) -> list[list[Rows] | Exception]:
        """Several batches in one durable transaction, each succeeding or failing alone."""
        if len(batches) == 1:
            return [self._write_alone(batches[0])]
        with self.transaction() as connection:
            before = connection.total_changes
            answers = [self._in_savepoint(connection, batch) for batch in batches]
            changed = connection.total_changes != before
        if changed and any(map(_concerns_others, batches)):
            self._changed()
        return answers

    def _write_alone(self, batch: StatementGroup) -> list[Rows] | Exception:
        """Nobody to be kept apart from: the transaction itself is its savepoint."""
        try:
            with self.transaction() as connection:
                before = connection.total_changes
                answers = [self._execute(connection, each) for each in batch.statements]
                changed = connection.total_changes != before
        except Exception as error:
            return error
        if changed and _concerns_others(batch):
            self._changed()
        return answers

    def read(self, batch: StatementGroup) -> list[Rows]:
        """Reads see the last commit, and wait for no writer."""
        with self._reader.lock, Translating(self.path):
            connection = self._reader.connection()
            self._reader.now = self._clock()
            return [self._execute(connection, each) for each in batch.statements]

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The right to write, from BEGIN to COMMIT."""
        turns = self._turns or contextlib.nullcontext()
        with self._writer.lock, Translating(self.path):
            connection = self._writer.connection()
            with turns:
                connection.execute("begin immediate")
                self._writer.now = self._clock()
                try:
                    yield connection
                    connection.execute("commit")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("rollback")
                    raise

    def write_within(self, connection: sqlite3.Connection, batch: StatementGroup) -> list[Rows]:
        """In a transaction that is open already, by the time it is now."""
        self._writer.now = self._clock()
        answer = self._in_savepoint(connection, batch)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def tell_changed(self) -> None:
        self._changed()

    def _in_savepoint(
        self, connection: sqlite3.Connection, batch: StatementGroup
    ) -> list[Rows] | Exception:
        connection.execute("savepoint batch")
        try:
            with Translating(self.path):
                answers = [self._execute(connection, each) for each in batch.statements]
        except Exception as error:  # of this batch: the others of the group go on
            if not connection.in_transaction:  # SQLite itself gave the transaction up
                raise
            connection.execute("rollback to batch")
            connection.execute("release batch")
            return error
        connection.execute("release batch")
        return answers

    def _execute(self, connection: sqlite3.Connection, statement: Statement) -> Rows:
        """Each part of the statement's script, for each row of its set."""
        parts = self._scripts[statement.name]
        params = {name: _bound(value) for name, value in statement.params.items()}
        found: Rows = []
        for row in statement.rows if statement.rows is not None else ({},):
            values = params | {name: _bound(value) for name, value in row.items()}
            for sql in parts:
                cursor = connection.execute(sql, values)
                found += cursor.fetchall()
                if cursor.rowcount == 0 and sql.startswith(_LOOKS):
                    found += connection.execute(parts[-1], values).fetchall()
                    break
        return found

    def user_version(self) -> int:
        with self._reader.lock, Translating(self.path):
            return int(self._reader.connection().execute("pragma user_version").fetchone()[0])

    def integrity(self) -> tuple[bool, str]:
        with self._reader.lock, Translating(self.path):
            word = str(self._reader.connection().execute("pragma quick_check(1)").fetchone()[0])
        return word == "ok", word

    def close(self) -> None:
        self._reader.close()
        self._writer.close(also=self._turns.close if self._turns is not None else lambda: None)

    # -- forks -------------------------------------------------------------------------------

    def rest(self) -> bool:
        if not self._writer.lock.acquire(timeout=_PATIENCE_SECONDS):
            return False
        if not self._reader.lock.acquire(timeout=_PATIENCE_SECONDS):
            self._writer.lock.release()
            return False
        try:
            if self.path is not None and not self._writer.is_writing:
                self.close()
        except BaseException:
            self.wake()
            raise
        return True

    def wake(self) -> None:
        self._reader.lock.release()
        self._writer.lock.release()

    def begin_anew(self) -> None:
        self._reader.begin_anew()
        self._writer.begin_anew()


def _concerns_others(batch: StatementGroup) -> bool:
    return any(statement.name not in _QUIET for statement in batch.statements)


def create_private(path: Path) -> None:
    """Jobs carry private data: the file is for its owner only."""
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, stat.S_IRUSR | stat.S_IWUSR))


def existing(path: Path) -> str:
    """As a URI that never makes a file."""
    return f"file:{quote(os.fsencode(path))}?mode=rw"


def _use_write_ahead_log(connection: sqlite3.Connection, path: Path) -> None:
    """SQLite does not wait for others who change the mode of a new file: take turns for it."""
    if connection.execute("pragma journal_mode").fetchone()[0] == "wal":
        return
    turns = WriteLock(path)
    try:
        with turns:
            connection.execute("pragma journal_mode = wal")
    finally:
        turns.close()


def _bound(value: Any) -> Any:
    """A value as SQLite takes it."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, datetime):
        return micros_of(value)
    if isinstance(value, list | tuple):
        return msgspec.json.encode(value).decode()
    return value


class Translating:
    """Around whatever SQLite does: its errors become the store's own."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        if isinstance(error, sqlite3.IntegrityError):
            text = str(error)
            if "UNIQUE constraint failed" in text:
                index = "job_unique" if "unique_key" in text else "job_holder"
                raise Conflict(index) from None
            raise StoreError(f"SQLite refused a row: {text}") from error
        if isinstance(error, sqlite3.Error):
            raise _error_of(str(error), self._path) from error
        if isinstance(error, OSError):
            raise _os_error_of(error, self._path) from error


def _os_error_of(error: OSError, path: Path | None) -> StoreError:
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return StoreReadOnly(
            f"the store {path} cannot be written: {error.strerror}; "
            "check the owner and mode of the file and its folder"
        )
    return StoreUnavailable(f"the store {path} cannot be opened: {error.strerror}")


def _error_of(text: str, path: Path | None) -> StoreError:
    where = f"the store {path or 'in memory'}"
    if "readonly" in text:
        return StoreReadOnly(
            f"{where} cannot be written: check the owner and mode of the file and its folder"
        )
    if "full" in text:
        return StoreFull(f"{where} has no space left: free some, nothing was written")
    if "no such table" in text or "no such column" in text:
        return SchemaMissing(f"{where} has no Freehold schema: run `freehold migrate`")
    if "not a database" in text:
        return StoreError(f"{path} is not an SQLite database: choose another file")
    if "unable to open" in text and path is not None and _is_gone(path):
        return SchemaMissing(f"{where} is not there: was it moved or dropped?")
    if "unable to open" in text:
        return StoreUnavailable(f"{where} cannot be opened: does its folder exist?")
    return StoreUnavailable(f"{where} failed: {text}")


def _is_gone(path: Path) -> bool:
    return path.parent.is_dir() and not path.exists()
