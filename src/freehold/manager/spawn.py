"""Starting a worker process: by the command that a user would type.

The store's URL is passed in the environment, which other users cannot read.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

from freehold.manager.process_slots import ProcessSlot, SlotOwner


class ChildProcess(Protocol):
    """What a manager needs of a process that it has started."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def send_signal(self, sig: int) -> None: ...


P = TypeVar("P", bound=ChildProcess)

#: Starts a worker with these arguments. It inherits this open file.
Start: TypeAlias = Callable[[Sequence[str], int], ChildProcess]
#: Signals a worker that another manager has started.
Kill: TypeAlias = Callable[[SlotOwner, signal.Signals], None]


def starter(
    arguments: Sequence[str], environment: Mapping[str, str], hidden: Collection[str] = ()
) -> Start:
    """Starts workers with these arguments and variables, and without the ``hidden`` variables."""
    # -P: a file in the current folder must not be imported in place of one of our modules. With
    # --app the worker adds the folder itself, after its own imports.
    command = (sys.executable, "-P", "-m", "freehold", "worker", *arguments)

    def start(more: Sequence[str], slot_file: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            (*command, *more),
            env={
                name: value
                for name, value in {**os.environ, **environment}.items()
                if name not in hidden
            },
            stdin=subprocess.DEVNULL,
            pass_fds=(slot_file,),
            # Ctrl-C goes to the manager only, which then drains its workers.
            start_new_session=True,
        )

    return start


def kill(owner: SlotOwner, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(owner.pid, number)


def is_group_gone(pid: int) -> bool:
    """Whether a worker and its child processes, which are in its process group, have all ended."""
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def start_in(slot: ProcessSlot, folder: Path, start: Callable[[Sequence[str], int], P]) -> P | None:
    """None if the slot is taken. Our copy of the file is closed: only the worker keeps it open."""
    file = slot.take()
    if file is None:
        return None
    try:
        return start(("--managed-in", str(folder), "--slot-file", str(file)), file)
    finally:
        os.close(file)
