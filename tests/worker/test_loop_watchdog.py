"""What a watchdog logs when the event loop stands still, and whom it does not blame."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import re
import threading
import time
from collections.abc import Callable

import pytest

from freehold.model.job import Attempt
from freehold.telemetry import Telemetry
from freehold.worker.held_leases import HeldLease
from freehold.worker.loop_watchdog import BLOCK_SECONDS, LoopWatchdog

LONG = BLOCK_SECONDS + 2.0


def lease(*, is_coroutine: bool) -> HeldLease:
    attempt = Attempt(7, "w1", 1, "shop.bill", "default", "{}", 1, 3, 0, 0, None, None, None)
    held = HeldLease(attempt, float("inf"))
    held.is_coroutine = is_coroutine
    return held


def hold_the_interpreter(seconds: float) -> None:
    """As a C extension that does not release the lock."""
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))


async def watch_until(watchdog: LoopWatchdog, ended: threading.Event) -> None:
    watching = asyncio.create_task(watchdog.watch())
    await asyncio.to_thread(ended.wait)
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching


async def block_while_watched(block: Callable[[float], None], held: HeldLease) -> None:
    """Blocks while a task of the attempt runs, and returns when the watchdog has logged it."""
    task, telemetry, logged = asyncio.current_task(), Telemetry(), asyncio.Event()
    assert task is not None
    watchdog = LoopWatchdog({task: held}, telemetry, time.monotonic)
    ended = threading.Event()
    watching = asyncio.create_task(asyncio.to_thread(asyncio.run, watch_until(watchdog, ended)))
    telemetry.count = lambda *_: logged.set()  # type: ignore[method-assign]
    ticking = asyncio.create_task(watchdog.tick())
    await asyncio.sleep(0)
    block(LONG)
    await logged.wait()
    ticking.cancel()
    ended.set()
    await watching


BLOCKED = r"task shop.bill blocked the event loop for \d\.\d s \(job 7\): "
ON_THE_LOOP = BLOCKED + "await in it, or make it a plain def, which runs in a thread"
RESULT = BLOCKED + "its result takes long to encode: return less"
PROCESS = (
    r"the whole process stood still for \d\.\d s: it was suspended, or a thread held the "
    r"interpreter's lock \(GIL\), as some C extensions do; running: shop.bill"
)


@pytest.mark.parametrize(
    ("block", "is_coroutine", "expected"),
    [
        (time.sleep, True, ON_THE_LOOP),
        (time.sleep, False, RESULT),
        (hold_the_interpreter, False, PROCESS),
    ],
    ids=["coroutine", "result", "interpreter"],
)
def test_the_warning_names_the_cause(
    caplog: pytest.LogCaptureFixture,
    block: Callable[[float], None],
    is_coroutine: bool,
    expected: str,
) -> None:
    caplog.set_level(logging.WARNING)
    asyncio.run(block_while_watched(block, lease(is_coroutine=is_coroutine)))
    (record,) = [each for each in caplog.records if each.name == "freehold"]
    assert re.fullmatch(expected, record.getMessage()), record.getMessage()
