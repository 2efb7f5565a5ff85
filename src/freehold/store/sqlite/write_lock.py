"""The right to write, for processes and for coroutines.

Processes take two file locks. A process that wants to write takes the *queue lock*, then the *write
lock*, then releases the queue lock. The process that is next holds the queue lock, so that the one
that has just written cannot overtake it.

In memory everything happens in the event loop's own thread, where no lock can keep two coroutines
apart. There each coroutine awaits the end of the other's transaction.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import stat
from pathlib import Path

#: Beside the database file, e.g. `freehold.db-write-lock`.
QUEUE_LOCK = "-queue-lock"
WRITE_LOCK = "-write-lock"


class WriteLock:
    """Of processes. Used by one thread of the process at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pid = 0
        self._queue_lock = self._write_lock = -1

    def __enter__(self) -> None:
        if self._pid != os.getpid():  # a forked child would share the locks of its parent
            self._queue_lock = _open_lock(self._path, QUEUE_LOCK)
            self._write_lock = _open_lock(self._path, WRITE_LOCK)
            self._pid = os.getpid()
        fcntl.flock(self._queue_lock, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._write_lock, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._queue_lock, fcntl.LOCK_UN)

    def __exit__(self, *_: object) -> None:
        fcntl.flock(self._write_lock, fcntl.LOCK_UN)

    def close(self) -> None:
        pid, self._pid = self._pid, 0
        if pid == os.getpid():
            os.close(self._queue_lock)
            os.close(self._write_lock)


class LoopLock:
    """Of the coroutines of one loop."""

    def __init__(self) -> None:
        self._released: asyncio.Future[None] | None = None

    async def wait(self) -> None:
        """Until no other coroutine of this loop has a transaction open."""
        while (released := self._released) is not None and not released.done():
            if released.get_loop() is not asyncio.get_running_loop():
                return  # held in another thread: the engine's lock keeps the two apart
            await asyncio.shield(released)

    def acquire(self) -> asyncio.Future[None]:
        """Call after `wait`. Setting the result of the future releases the lock."""
        self._released = asyncio.get_running_loop().create_future()
        return self._released


def _open_lock(path: Path, suffix: str) -> int:
    return os.open(f"{path}{suffix}", os.O_RDWR | os.O_CREAT, stat.S_IRUSR | stat.S_IWUSR)
