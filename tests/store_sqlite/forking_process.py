"""Children of a process that has the store open: forked, killed, or without permissions.

`python -m tests.store_sqlite.forking_process ROLE PATH …`, in a separate process, because pytest's
process has threads and must keep its permissions.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

from freehold.errors import StoreError
from freehold.model.job import NewJob
from freehold.store.sqlite.database import SqliteDatabase
from freehold.store.store import Store
from tests.kills import kill_in_the_middle

UNPRIVILEGED_UID = 65534
JOB = NewJob(task="t")
HANG_SECONDS = 10


def fork_while_others_write(path: Path) -> list[int]:
    """Children enqueue with the inherited store, while threads of the parent write."""
    warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of just this
    store = Store(SqliteDatabase(path).session())
    stop = threading.Event()
    threads = [threading.Thread(target=write_until, args=(store, stop)) for _ in range(4)]
    for thread in threads:
        thread.start()
    statuses = [forked(lambda: store.enqueue([JOB])) for _ in range(20)]
    stop.set()
    for thread in threads:
        thread.join()
    store.enqueue([JOB])
    return statuses


def write_until(store: Store, stop: threading.Event) -> None:
    while not stop.is_set():
        store.enqueue([JOB])
        store.counts()


def forked(work: object) -> int:
    """Returns the wait status of the child."""
    child = os.fork()
    if child == 0:
        signal.alarm(HANG_SECONDS)
        code = 1
        try:
            assert callable(work)
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


class Listener:
    """In a thread, like the one that renews a worker's leases."""

    def __init__(self, database: SqliteDatabase) -> None:
        notified = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(database.listen(lambda _topic: notified.set()))
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        notified.wait()
        time.sleep(0.1)  # and has polled the file

    def _run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._task)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()
        self._loop.close()


def close_before_the_child_writes(path: Path, *, listening: bool) -> list[int]:
    """The child writes after its parent has closed the file. Returns the ids that are kept."""
    warnings.simplefilter("ignore", DeprecationWarning)
    database = SqliteDatabase(path)
    store = Store(database.session())
    store.enqueue([JOB])
    listener = Listener(database) if listening else None
    is_closed, close = os.pipe()
    has_written, write = os.pipe()
    child = os.fork()
    if child == 0:
        store.enqueue([JOB])
        os.write(write, b".")
        os.read(is_closed, 1)
        store.enqueue([JOB])
        os._exit(0)
    store.enqueue([JOB])
    os.read(has_written, 1)
    if listener is not None:
        listener.stop()
    database.close()
    os.write(close, b".")
    assert os.waitpid(child, 0)[1] == 0
    again = SqliteDatabase(path)
    kept = sorted(Store(again.session()).read([1, 2, 3, 4]))
    again.close()
    return kept


def migrate_and_be_killed(folder: Path, children: int, least: int) -> list[bool]:
    """A new file for each child. Returns which of them were killed in time."""
    began = time.monotonic()
    SqliteDatabase(folder / "whole.db").close()
    return kill_in_the_middle(
        lambda number: SqliteDatabase(folder / f"killed{number}.db"),
        time.monotonic() - began,
        children=children,
        least=least,
    )


def try_without_permissions(path: Path) -> list[str]:
    """The error for a user that may not write the file."""
    SqliteDatabase(None).close()  # imports all modules, while they can be read
    if os.geteuid() == 0:
        os.setgid(UNPRIVILEGED_UID)
        os.setuid(UNPRIVILEGED_UID)
    try:
        database = SqliteDatabase(path)
        store = Store(database.session())
        store.enqueue([JOB])
    except StoreError as error:
        return [type(error).__name__, str(error)]
    return ["nothing was refused"]


def main(role: str, path: str, *rest: str) -> None:
    result: object
    match role:
        case "fork":
            result = fork_while_others_write(Path(path))
        case "close" | "listen":
            result = close_before_the_child_writes(Path(path), listening=role == "listen")
        case "migrate":
            result = migrate_and_be_killed(Path(path), int(rest[0]), int(rest[1]))
        case _:
            result = try_without_permissions(Path(path))
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
