"""The tasks of these tests: some that wait at a gate, some that are over in a moment."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from freehold import Freehold, Retry
from freehold.worker.execution.context import Context
from tests.worker.record import note

app = Freehold()
GIVEN: Any = None
#: Killed workers are no fault of the job.
SOON = Retry(max_attempts=1000, base_seconds=0.05, jitter=0.0)
#: What a worker does right after its start: a number is its exit code.
AT_START_VARIABLE = "FREEHOLD_TEST_AT_START"


def _end_with_the_test() -> None:
    """The service ends when its standard input does; its workers then have no manager."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


if "up" in sys.argv[:2]:
    threading.Thread(target=_end_with_the_test, daemon=True).start()
elif (at_start := Path(os.environ.get(AT_START_VARIABLE, os.devnull))).is_file():
    os._exit(int(at_start.read_text()))


@app.task(retry=SOON)
async def waits(gate: str, *, ctx: Context = GIVEN) -> None:
    """Until somebody opens the gate."""
    note(ctx, "start")
    while not Path(gate).exists():  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.02)
    note(ctx, "end")


@app.task(retry=SOON)
async def naps(seconds: float, *, ctx: Context = GIVEN) -> None:
    note(ctx, "start")
    await asyncio.sleep(seconds)
    note(ctx, "end")


@app.task(retry=Retry(max_attempts=1), timeout=0.2)
def deaf(gate: str, *, ctx: Context = GIVEN) -> None:
    """A thread that cannot be stopped."""
    note(ctx, "start")
    while not Path(gate).exists():
        time.sleep(0.02)
