"""A look at the processes of this machine, from outside."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path


def arguments_of(group: int | None = None) -> list[str]:
    """Of every process that lives, or of those in this group. A machine need not have `ps`; one
    that has no `/proc` has it."""
    if not Path("/proc/self").exists():
        fields = (line.split(None, 2) for line in _listed().splitlines())
        living = (each for each in fields if len(each) == 3 and not each[1].startswith("Z"))
        return [words for theirs, _, words in living if group in (None, int(theirs))]
    return [words for theirs, words in _living() if group in (None, theirs)]


def _listed() -> str:
    command = ["ps", "-A", "-ww", "-o", "pgid=,stat=,args="]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _living() -> Iterator[tuple[int, str]]:
    """Group and arguments."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            # The name stands in brackets and can contain anything.
            state, _, group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if state != "Z":
                yield int(group), words


def pids_with(mark: bytes) -> list[int]:
    """Those whose arguments contain this, also if they have not said a word. A dead one that nobody
    has buried has no arguments. Some tests look fifty times a second, so this is quick."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 (a path for each process takes twice as long)
        if name.isdigit():
            with (
                contextlib.suppress(OSError),
                open(f"/proc/{name}/cmdline", "rb", buffering=0) as arguments,  # noqa: PTH123
            ):
                if mark in arguments.read():
                    found.append(int(name))
    return found
