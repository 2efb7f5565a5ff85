"""The worker's side of being managed: it sits on its seat, and looks whether a manager lives.

A manager that dies takes nothing along. Its workers go on for a moment, in which another
manager may take them over, and drain when none does.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from freehold.manager import process_slots
from freehold.telemetry import log

LOOK_SECONDS = 0.5
#: How long there may be no manager. With a look before and after it, well below 5 s.
GONE_SECONDS = 2.5


class ManagerLink:
    """Whose worker this is."""

    def __init__(self, folder: Path, seat: int, owner: str) -> None:
        self._folder = folder
        process_slots.take_slot(seat, process_slots.SlotOwner(os.getpid(), owner))
        self.manager = process_slots.manager_in(folder) or None

    async def until_gone(self, on_change: Callable[[], None]) -> None:
        """Returns when nobody has managed this worker for a while."""
        loop = asyncio.get_running_loop()
        # Who finds no manager when it starts cannot know for how long there was none: it has
        # nothing in hand, and does not wait.
        seen_at = loop.time() if self.manager else float("-inf")
        while True:
            manager = process_slots.manager_in(self._folder)
            now = loop.time()
            if manager is not None:
                seen_at = now
            elif now - seen_at >= GONE_SECONDS:
                log.warning("the manager %s is gone and nobody took over", self.manager)
                return
            if manager and manager != self.manager:
                self.manager = manager
                on_change()
            await asyncio.sleep(LOOK_SECONDS)
