"""A look at the processes of this machine, from outside."""

from __future__ import annotations

import contextlib
import os


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
