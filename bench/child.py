"""One process of a measurement:  python -m bench.child ROLE SIDE URL NUMBER FILE

    make    the side's tables
    one     jobs one by one, each awaited, for NUMBER seconds
    block   the same by a call that blocks
    many    NUMBER jobs by the side's bulk call
    spaced  NUMBER jobs, 20 ms apart, each with the time at which it was sent
    work    a worker, until killed, that reports to FILE

The first job of a producer is not measured: connecting, and what is prepared once, is not what a
producer that lives for days pays for.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any

from bench.counting import tick
from bench.sides import OURS, SIDES
from bench.sides.side import Side

WARM = 20
SPACE_SECONDS = 0.02


async def run(role: str, side: Side, number: float) -> dict[str, Any]:
    if role == "make":
        await side.make()
        return {}
    if role == "block":
        return _blocking(side, number)
    await side.open()
    if role == "work":
        await side.work()
        return {}
    if role == "spaced":
        for _ in range(int(number)):
            await side.one(time.time())
            await asyncio.sleep(SPACE_SECONDS)
        return {"jobs": int(number)}
    return await (_one(side, number) if role == "one" else _many(side, int(number)))


async def _one(side: Side, seconds: float) -> dict[str, Any]:
    for _ in range(WARM):
        await side.one(0.0)
    jobs, began = 0, time.time()
    while time.time() - began < seconds:
        await side.one(0.0)
        jobs += 1
    return {"jobs": jobs + WARM, "rate": jobs / (time.time() - began)}


def _blocking(side: Side, seconds: float) -> dict[str, Any]:
    one = side.opened()
    if one is None:
        return {}
    for _ in range(WARM):
        one(0.0)
    jobs, began = 0, time.time()
    while time.time() - began < seconds:
        one(0.0)
        jobs += 1
    return {"jobs": jobs + WARM, "rate": jobs / (time.time() - began)}


async def _many(side: Side, count: int) -> dict[str, Any]:
    await side.one(0.0)
    began = time.time()
    await side.many(count)
    return {"jobs": count + 1, "rate": count / (time.time() - began)}


def main() -> None:
    role, name, url, number, file = sys.argv[1:6]
    tick.report_to(file)
    work = run(role, {**SIDES, **OURS}[name](url), float(number))
    try:
        import uvloop
    except ImportError:
        answer = asyncio.run(work)
    else:
        answer = uvloop.run(work)
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0)  # connections that a side leaves open are not waited for


if __name__ == "__main__":
    main()
