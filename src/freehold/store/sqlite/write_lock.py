"""Whose turn it is to write.

Processes take turns by two file locks: whoever wants to write first takes the *gate*, then the
*pen*, then opens the gate again. The one before the pen holds the gate, so whoever lays the pen
down cannot overtake it.

In memory everything happens in the event loop's own thread, where no lock can keep two
coroutines apart: there they wait for each other's transactions.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import stat
from pathlib import Path


class WriteLock:
    """The gate and the pen. Used by one thread of the process at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pid = 0
        self._gate = self._pen = -1

    def __enter__(self) -> None:
        if self._pid != os.getpid():  # locks of a forked parent are shared with it: take our own
            self._gate, self._pen = _open_lock(self._path, "gate"), _open_lock(self._path, "pen")
            self._pid = os.getpid()
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._pen, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)

    def __exit__(self, *_: object) -> None:
        fcntl.flock(self._pen, fcntl.LOCK_UN)

    def close(self) -> None:
        pid, self._pid = self._pid, 0
        if pid == os.getpid():
            os.close(self._gate)
            os.close(self._pen)


class LoopLock:
    """For coroutines of one loop."""

    def __init__(self) -> None:
        self._taken: asyncio.Future[None] | None = None

    async def wait(self) -> None:
        """Until no other coroutine of this loop has a transaction open."""
        while (taken := self._taken) is not None and not taken.done():
            if taken.get_loop() is not asyncio.get_running_loop():
                return  # another thread's: the engine's lock keeps us apart
            await asyncio.shield(taken)

    def take(self) -> asyncio.Future[None]:
        """Whoever takes it sets its result at the end."""
        self._taken = asyncio.get_running_loop().create_future()
        return self._taken


def _open_lock(path: Path, name: str) -> int:
    return os.open(f"{path}-{name}", os.O_RDWR | os.O_CREAT, stat.S_IRUSR | stat.S_IWUSR)
