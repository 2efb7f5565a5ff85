"""Workers of a test end with it, even if the test itself is killed and cleans nothing up.

Standard input is a pipe to the test. When the test's end closes, for whatever reason, the
worker's whole process group is killed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading

LIFELINE_VARIABLE = "FREEHOLD_TEST_LIFELINE"


def hold() -> None:
    """Only in a worker that a test has started; its children are in its group."""
    if LIFELINE_VARIABLE in os.environ and multiprocessing.parent_process() is None:
        threading.Thread(target=_wait, args=(sys.stdin.fileno(),), daemon=True).start()


def _wait(lifeline: int) -> None:
    while os.read(lifeline, 1):
        pass
    os.killpg(os.getpgid(0), signal.SIGKILL)
