"""The tasks of these tests: some wait for a file, some are short."""

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
from tests.worker.handler_record import record_step

app = Freehold()
GIVEN: Any = None
#: A killed worker must not exhaust the attempts of a job.
SOON = Retry(max_attempts=1000, base_seconds=0.05, jitter=0.0)
#: A file with the exit code of a worker that ends right after its start.
AT_START_VARIABLE = "FREEHOLD_TEST_AT_START"


def _end_with_the_test() -> None:
    """The service ends with its standard input; its workers then have no manager."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


if "up" in sys.argv[:2]:
    threading.Thread(target=_end_with_the_test, daemon=True).start()
elif (at_start := Path(os.environ.get(AT_START_VARIABLE, os.devnull))).is_file():
    os._exit(int(at_start.read_text()))


@app.task(retry=SOON)
async def waits(gate: str, *, ctx: Context = GIVEN) -> None:
    """Runs until the file exists."""
    record_step(ctx, "start")
    while not Path(gate).exists():  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.02)
    record_step(ctx, "end")


@app.task(retry=SOON)
async def naps(seconds: float, *, ctx: Context = GIVEN) -> None:
    record_step(ctx, "start")
    await asyncio.sleep(seconds)
    record_step(ctx, "end")


@app.task(retry=SOON)
def variable(name: str) -> str | None:
    return os.environ.get(name)


@app.task(retry=Retry(max_attempts=1), timeout=0.2)
def unstoppable(gate: str, *, ctx: Context = GIVEN) -> None:
    """A thread that cannot be stopped."""
    record_step(ctx, "start")
    while not Path(gate).exists():
        time.sleep(0.02)
