"""Sees that source files have changed, for `freehold up --reload`.

By their times, once a second: a few thousand files take some milliseconds, and nothing has to be
installed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from freehold.telemetry import log

LOOK_SECONDS = 1.0
#: Folders with other people's code, or with no code.
_ELSEWHERE = {"node_modules", "site-packages", "__pycache__"}


async def follow(folder: Path, on_change: Callable[[], None]) -> None:
    """Until cancelled."""
    before = await asyncio.to_thread(times, folder)
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        after = await asyncio.to_thread(times, folder)
        changed = {path for path, _ in before.items() ^ after.items()}
        if changed:
            first = min(changed).relative_to(folder)
            log.info("%s has changed (%d files): the workers are replaced", first, len(changed))
            on_change()
        before = after


def times(folder: Path) -> dict[Path, int]:
    return dict(_times(folder))


def _times(folder: Path) -> Iterator[tuple[Path, int]]:
    for where, folders, names in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".")
            and name not in _ELSEWHERE
            and not (Path(where) / name / "pyvenv.cfg").exists()
        ]
        for name in names:
            if name.endswith((".py", ".toml")):
                try:
                    yield Path(where) / name, (Path(where) / name).stat().st_mtime_ns
                except OSError:  # removed while we looked
                    continue
