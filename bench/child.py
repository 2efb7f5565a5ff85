"""One process of a measurement:  python -m bench.child ROLE CONTENDER URL NUMBER FILE

    install           creates the contender's tables
    enqueue           jobs one by one, each awaited, for NUMBER seconds
    enqueue-blocking  the same by a call that blocks
    enqueue-bulk      NUMBER jobs by the contender's bulk call
    enqueue-mixed     the same with jobs that differ
    enqueue-steady    NUMBER jobs that succeed at once
    enqueue-retried   the same, but every tenth fails in its first attempt
    enqueue-spaced    NUMBER jobs, 20 ms apart, each with the time at which it was sent
    work              a worker, until killed, that reports to FILE

A producer's first jobs are not measured: a producer that runs for days connects and prepares its
statements once.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from bench.contender import Contender
from bench.counting import tick

WARM_UP_JOBS = 20
SPACE_SECONDS = 0.02
RETRIED_EVERY = 10


async def run(role: str, contender: Contender, number: float) -> dict[str, Any]:
    if role == "install":
        await contender.install()
        return {}
    if role == "enqueue-blocking":
        return _blocking(contender, number)
    await contender.open()
    if role == "work":
        await contender.work()
        return {}
    if role == "enqueue-spaced":
        for _ in range(int(number)):
            await contender.enqueue(time.time())
            await asyncio.sleep(SPACE_SECONDS)
        return {"jobs": int(number)}
    if role == "enqueue":
        return await _awaited(contender, number)
    bulk_calls: dict[str, Callable[[int], Awaitable[None]]] = {
        "enqueue-bulk": contender.enqueue_bulk,
        "enqueue-mixed": contender.enqueue_mixed,
        "enqueue-steady": functools.partial(contender.enqueue_retried, every=0),
        "enqueue-retried": functools.partial(contender.enqueue_retried, every=RETRIED_EVERY),
    }
    return await _bulk(contender, bulk_calls[role], int(number))


async def _awaited(contender: Contender, seconds: float) -> dict[str, Any]:
    for _ in range(WARM_UP_JOBS):
        await contender.enqueue(0.0)
    jobs, began = 0, time.time()
    while time.time() - began < seconds:
        await contender.enqueue(0.0)
        jobs += 1
    return {"jobs": jobs + WARM_UP_JOBS, "rate": jobs / (time.time() - began)}


def _blocking(contender: Contender, seconds: float) -> dict[str, Any]:
    enqueue = contender.open_blocking()
    if enqueue is None:
        return {}
    for _ in range(WARM_UP_JOBS):
        enqueue(0.0)
    jobs, began = 0, time.time()
    while time.time() - began < seconds:
        enqueue(0.0)
        jobs += 1
    return {"jobs": jobs + WARM_UP_JOBS, "rate": jobs / (time.time() - began)}


async def _bulk(
    contender: Contender, call: Callable[[int], Awaitable[None]], count: int
) -> dict[str, Any]:
    await contender.enqueue(0.0)
    began, cpu_began = time.time(), time.process_time()
    await call(count)
    seconds, cpu = time.time() - began, time.process_time() - cpu_began
    return {"jobs": count + 1, "rate": count / seconds, "cpu_us": round(cpu / count * 1e6, 1)}


def print_result(role: Coroutine[Any, Any, dict[str, Any]]) -> None:
    """Run a role, print its figures as JSON, and end the process."""
    try:
        import uvloop
    except ImportError:
        figures = asyncio.run(role)
    else:
        figures = uvloop.run(role)
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()
    os._exit(0)  # does not wait for connections that a contender left open


def main() -> None:
    from bench.contenders import CONTENDERS, VARIANTS  # bench.against runs where they are not

    role, name, url, number, file = sys.argv[1:6]
    tick.report_to(file)
    print_result(run(role, {**CONTENDERS, **VARIANTS}[name](url), float(number)))


if __name__ == "__main__":
    main()
