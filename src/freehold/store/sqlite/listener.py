"""Notifications on one machine: a commit changes the file, which other processes see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from freehold.clock import system_micros
from freehold.store.sqlite.file_poll import file_signature, is_stable

#: A poll costs a few microseconds, so it can be frequent.
POLL_SECONDS = 0.02
_RETRY_SECONDS = 1.0

OnNotification: TypeAlias = Callable[[str | None], None]


class LocalNotifier:
    """The same in memory, where the writer calls the listeners."""

    def __init__(self) -> None:
        self._listeners: list[OnNotification] = []

    def notify(self) -> None:
        for on_notification in tuple(self._listeners):
            on_notification("")

    async def listen(self, on_notification: OnNotification) -> None:
        """Until canceled."""
        on_notification("")
        self._listeners.append(on_notification)
        try:
            await asyncio.Event().wait()
        finally:
            self._listeners.remove(on_notification)


async def listen(path: Path, on_notification: OnNotification) -> None:
    """Until canceled; an error costs latency only.

    The file is polled from outside: a connection that a handler's fork inherits would break the
    locks of the writers (see `fork_safety`).
    """
    while True:
        on_notification("")
        last = file_signature(path)
        while last[0] is not None:
            was_stable = is_stable(last, system_micros())
            await asyncio.sleep(POLL_SECONDS)
            now = file_signature(path)
            # A file that changed just before the last poll may have changed again since, within
            # the precision of its timestamp.
            if now != last or not was_stable:
                last = now
                on_notification("")
        on_notification(None)
        await asyncio.sleep(_RETRY_SECONDS)
