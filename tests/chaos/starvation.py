"""Detects that the machine gave a process no time to run, which excuses its lost leases.

A thread sleeps for short times. If it wakes far too late and the process used almost no processor
time meanwhile, the machine was the cause. Otherwise the process itself was, which is no excuse.
"""

from __future__ import annotations

import threading
import time

from tests.chaos.recorder import Recorder, micros

_NAP_SECONDS = 0.05
#: Below this share of the elapsed time, the process was not running.
_BUSY_SHARE = 0.3


def watch_for_starvation(recorder: Recorder, lease_seconds: float) -> None:
    threading.Thread(target=_watch, args=(recorder, lease_seconds), daemon=True).start()


def _watch(recorder: Recorder, lease_seconds: float) -> None:
    """A renewal that is late by a third of a lease may be too late."""
    while True:
        began, used, at = time.monotonic(), time.process_time(), micros()
        time.sleep(_NAP_SECONDS)
        passed, used = time.monotonic() - began, time.process_time() - used
        if passed > lease_seconds / 3 and used < passed * _BUSY_SHARE:
            until = micros() + round(lease_seconds * 1_000_000)
            recorder.record("fault", at=at, kind="starved", grave=True, until=until, seconds=passed)
