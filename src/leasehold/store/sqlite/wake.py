"""Hints on one machine: whoever commits to the file changes what others see of it."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

#: Looking costs a few microseconds, so it can be done often.
LOOK_SECONDS = 0.02
_RETRY_SECONDS = 1.0

Heard: TypeAlias = Callable[[str | None], None]


class Bell:
    """The same in memory, where whoever writes can tell whoever listens."""

    def __init__(self) -> None:
        self._listeners: list[Heard] = []

    def ring(self) -> None:
        for heard in tuple(self._listeners):
            heard("")

    async def listen(self, heard: Heard) -> None:
        """Until cancelled."""
        heard("")
        self._listeners.append(heard)
        try:
            await asyncio.Event().wait()
        finally:
            self._listeners.remove(heard)


async def listen(path: Path, heard: Heard) -> None:
    """Until cancelled; what goes wrong costs latency only."""
    while True:
        with contextlib.suppress(sqlite3.Error):
            await _follow(path, heard)
        heard(None)
        await asyncio.sleep(_RETRY_SECONDS)


async def _follow(path: Path, heard: Heard) -> None:
    """A connection's data_version changes once others' commits can be seen."""
    heard("")
    with contextlib.closing(sqlite3.connect(str(path), isolation_level=None)) as connection:
        last = _version(connection)
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = _version(connection)
            if now != last:
                last = now
                heard("")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("pragma data_version").fetchone()[0])
