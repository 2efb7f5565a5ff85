"""A PostgreSQL server whose processes stand still: it accepts connections and answers nothing."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from freehold.lab.devpostgres import DevPostgres
from tests.concurrency import wait_until


@contextlib.contextmanager
def frozen(server: DevPostgres) -> Iterator[None]:
    """All its processes are stopped meanwhile."""
    postmaster = int((server.data / "postmaster.pid").read_text().splitlines()[0])
    os.kill(postmaster, signal.SIGSTOP)
    # Until then it may start one more, which would go on answering.
    wait_until(lambda: _state(postmaster) == "T", "the postmaster stands still")
    stopped = [postmaster, *_children(postmaster)]
    try:
        for process in stopped[1:]:
            _send(process, signal.SIGSTOP)
        yield
    finally:
        for process in stopped:
            _send(process, signal.SIGCONT)


def _state(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def _children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(each) for each in text.split()]


def _send(process: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # a backend may have ended meanwhile
        os.kill(process, number)
