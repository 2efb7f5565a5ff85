"""Watches source files for changes, for `freehold up --reload`.

It compares modification times once a second: a few thousand files take some milliseconds, and no
package is needed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from freehold.model.plural import count
from freehold.open_files import is_out_of_files
from freehold.rare_warning import RareWarning
from freehold.telemetry import log

CHECK_SECONDS = 1.0
#: Folders without source files of the project.
_IGNORED_FOLDERS = {"node_modules", "site-packages", "__pycache__"}


async def watch_sources(folder: Path, on_change: Callable[[], None]) -> None:
    """Runs until it is canceled."""
    file_error = RareWarning("cannot look for changed files, trying again: %s")
    before = await asyncio.to_thread(modification_times, folder)
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        try:
            after = await asyncio.to_thread(modification_times, folder)
        except OSError as error:
            file_error.log(error)
            continue
        changed = {path for path, _ in before.items() ^ after.items()}
        if changed:
            first = min(changed).relative_to(folder)
            others = f" and {count(len(changed) - 1, 'other file')}" if len(changed) > 1 else ""
            log.info("changed: %s%s; replacing the workers", first, others)
            on_change()
        before = after


def modification_times(folder: Path) -> dict[Path, int]:
    return dict(_times(folder))


def _times(folder: Path) -> Iterator[tuple[Path, int]]:
    for where, folders, names in os.walk(folder, onerror=_raise_out_of_files):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".")
            and name not in _IGNORED_FOLDERS
            and not (Path(where) / name / "pyvenv.cfg").exists()
        ]
        for name in names:
            if name.endswith((".py", ".toml")):
                try:
                    yield Path(where) / name, (Path(where) / name).stat().st_mtime_ns
                except OSError:  # removed meanwhile
                    continue


def _raise_out_of_files(error: OSError) -> None:
    """A folder that was removed, or is closed to this user, has no files; here they are unknown."""
    if is_out_of_files(error):
        raise error
