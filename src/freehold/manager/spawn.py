"""How a worker process is started: by the same command that a person would use.

The store's address travels by the environment, where it is nobody else's to read.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

from freehold.manager.process_slots import ProcessSlot, SlotOwner


class ChildProcess(Protocol):
    """What a manager has to know of a worker that it has started."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def send_signal(self, sig: int) -> None: ...


P = TypeVar("P", bound=ChildProcess)

#: Starts a worker with these arguments, which inherits this file.
Start: TypeAlias = Callable[[Sequence[str], int], ChildProcess]
#: Signals a worker that somebody else has started.
Kill: TypeAlias = Callable[[SlotOwner, signal.Signals], None]


def starter(arguments: Sequence[str], environment: Mapping[str, str]) -> Start:
    command = (sys.executable, "-m", "freehold", "worker", *arguments)

    def start(more: Sequence[str], seat: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            (*command, *more),
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            pass_fds=(seat,),
            # Ctrl-C is for the manager, which then drains its workers.
            start_new_session=True,
        )

    return start


def kill(sitter: SlotOwner, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(sitter.pid, number)


def start_on(seat: ProcessSlot, folder: Path, start: Callable[[Sequence[str], int], P]) -> P | None:
    """None if the seat is taken. Ours is closed at once: the worker alone keeps it."""
    file = seat.take()
    if file is None:
        return None
    try:
        return start(("--managed-in", str(folder), "--seat", str(file)), file)
    finally:
        os.close(file)
