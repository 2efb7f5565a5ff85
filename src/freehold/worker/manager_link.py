"""The worker's side of being managed: it keeps its process slot locked, and watches the manager.

If the manager dies, its workers go on for a few seconds, in which another manager may adopt them,
and drain when none does.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from freehold.manager import process_slots
from freehold.rare_warning import RareWarning
from freehold.telemetry import log
from freehold.worker.config import WorkerSettings

CHECK_SECONDS = 0.5
#: How long there may be no manager. With a check before and after it, well below 5 s.
GONE_SECONDS = 2.5


class ManagerLink:
    """The manager of this worker, and the slot that the manager gave it."""

    def __init__(self, folder: Path, slot_file: int, owner: str) -> None:
        self._folder = folder
        self._file_error = RareWarning("cannot check whether the manager runs, trying again: %s")
        process_slots.take_slot(slot_file, process_slots.SlotOwner(os.getpid(), owner))
        self.manager = self._current() or None

    @classmethod
    def given(cls, settings: WorkerSettings, owner: str) -> ManagerLink | None:
        """None for a worker without a manager."""
        if settings.managed_in is None or settings.slot_file is None:
            return None
        return cls(settings.managed_in, settings.slot_file, owner)

    def _current(self) -> str | None:
        """As `manager_in`, but "" if it is unknown because this process cannot open the file."""
        try:
            return process_slots.manager_in(self._folder)
        except OSError as error:
            self._file_error.log(error)
            return ""

    async def until_gone(self, on_change: Callable[[], None]) -> None:
        """Returns when there was no manager for GONE_SECONDS."""
        loop = asyncio.get_running_loop()
        # Without a manager at the start it is unknown for how long there was none. This worker
        # holds no lease yet, so it does not wait.
        seen_at = loop.time() if self.manager else float("-inf")
        while True:
            manager = self._current()
            now = loop.time()
            if manager is not None:
                seen_at = now
            elif now - seen_at >= GONE_SECONDS:
                log.warning(
                    "the manager %s is gone and no other manager took over: this worker drains",
                    self.manager,
                )
                return
            if manager and manager != self.manager:
                self.manager = manager
                on_change()
            await asyncio.sleep(CHECK_SECONDS)
