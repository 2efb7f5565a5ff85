"""Hints on one machine: whoever commits makes the log beside the file grow or change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

#: Looking costs a few microseconds, so it can be done often.
LOOK_SECONDS = 0.02

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
    """Until cancelled."""
    heard("")
    last = _mark(path)
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        now = _mark(path)
        if now != last:
            last = now
            heard("")


def _mark(path: Path) -> tuple[int, int] | None:
    try:
        found = Path(f"{path}-wal").stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
