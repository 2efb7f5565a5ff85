"""Notices that the machine gave a process no time to run: then leases end, and nobody is to blame.

A thread of its own sleeps a little, again and again. One that wakes far too late was kept waiting:
by the machine if the process used next to no processor time meanwhile; by the process itself
otherwise, which excuses nothing.
"""

from __future__ import annotations

import threading
import time

from tests.chaos.pen import Pen, micros

_NAP_SECONDS = 0.05
#: Of the time that passed: below this the process was not at work.
_BUSY_SHARE = 0.3


def take_pulse(pen: Pen, lease_seconds: float) -> None:
    threading.Thread(target=_watch, args=(pen, lease_seconds), daemon=True).start()


def _watch(pen: Pen, lease_seconds: float) -> None:
    """A third of a lease is what a keeper has in hand between two renewals."""
    while True:
        began, used, at = time.monotonic(), time.process_time(), micros()
        time.sleep(_NAP_SECONDS)
        passed, used = time.monotonic() - began, time.process_time() - used
        if passed > lease_seconds / 3 and used < passed * _BUSY_SHARE:
            until = micros() + round(lease_seconds * 1_000_000)
            pen.note("fault", at=at, kind="starved", grave=True, until=until, seconds=passed)
