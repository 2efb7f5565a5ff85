"""A PostgreSQL server whose processes stand still: it accepts connections and answers nothing."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from freehold.lab.devpostgres import DevPostgres


@contextlib.contextmanager
def frozen(server: DevPostgres) -> Iterator[None]:
    """All its processes are stopped meanwhile."""
    postmaster = int((server.data / "postmaster.pid").read_text().splitlines()[0])
    os.kill(postmaster, signal.SIGSTOP)  # first: it starts no more
    stopped = [postmaster, *_children(postmaster)]
    try:
        for process in stopped[1:]:
            _send(process, signal.SIGSTOP)
        yield
    finally:
        for process in stopped:
            _send(process, signal.SIGCONT)


def _children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(each) for each in text.split()]


def _send(process: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # a backend may have ended meanwhile
        os.kill(process, number)
