"""Hints on one machine: whoever commits to the file changes what others see of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from freehold.clock import system_micros
from freehold.store.sqlite.file_poll import is_settled, signature

#: Looking costs a few microseconds, so it can be done often.
LOOK_SECONDS = 0.02
_RETRY_SECONDS = 1.0

OnNotification: TypeAlias = Callable[[str | None], None]


class LocalNotifier:
    """The same in memory, where whoever writes can tell whoever listens."""

    def __init__(self) -> None:
        self._listeners: list[OnNotification] = []

    def ring(self) -> None:
        for heard in tuple(self._listeners):
            heard("")

    async def listen(self, heard: OnNotification) -> None:
        """Until cancelled."""
        heard("")
        self._listeners.append(heard)
        try:
            await asyncio.Event().wait()
        finally:
            self._listeners.remove(heard)


async def listen(path: Path, heard: OnNotification) -> None:
    """Until cancelled; what goes wrong costs latency only.

    By looking at the file from outside: a connection that a handler's fork took along would break
    the locks of those who write (see `forks`).
    """
    while True:
        heard("")
        last = signature(path)
        while last[0] is not None:
            is_sure = is_settled(last, system_micros())
            await asyncio.sleep(LOOK_SECONDS)
            now = signature(path)
            # What was changed just before we looked may have changed again at the same time.
            if now != last or not is_sure:
                last = now
                heard("")
        heard(None)
        await asyncio.sleep(_RETRY_SECONDS)
