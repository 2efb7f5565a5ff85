"""Callers of one process that wait for results: how much they read, and how soon they know.

Many callers wait by `acall`. Their jobs end one by one, at a steady rate. Counted are the statement
groups of the process's watcher. The delay of a result is counted from before its end is sent to the
store, so it contains the commit.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench import machine
from bench.server import Server
from freehold import Freehold
from freehold.model.job import Attempt
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.statements import AsyncSession, Rows, StatementGroup
from freehold.store.types import AttemptEnd, ClaimRequest, QueueDemand

OWNER = "bench"
WAIT_SECONDS = 600.0


@dataclass(frozen=True)
class Sizes:
    """The sizes of a run. ``ends``: jobs that end in a second."""

    clients: int = 1000
    ends: int = 10
    seconds: float = 20.0


QUICK = Sizes(clients=20, ends=50, seconds=0.2)


class CountingSession:
    """Of the watcher, on its own event loop."""

    def __init__(self, inner: AsyncSession) -> None:
        self._inner = inner
        self.groups = 0

    async def execute(self, group: StatementGroup) -> list[Rows]:
        self.groups += 1
        return await self._inner.execute(group)


@dataclass
class Times:
    """Monotonic times by job."""

    ended: dict[int, float] = field(default_factory=dict)
    arrived: dict[int, float] = field(default_factory=dict)

    def delays(self) -> list[float]:
        return sorted(self.arrived[job] - at for job, at in self.ended.items())


def run(server: Server, sizes: Sizes, out: Path) -> None:
    app = Freehold(server.recreate("results"))
    app.migrate()
    found = asyncio.run(_measure(app, sizes))
    app.close()
    document = {
        "case": "results",
        **machine.describe(),
        "server": server.describe(),
        "sizes": asdict(sizes),
        "load_average": machine.load_average(),
        **found,
    }
    out.write_text(json.dumps(document, indent=1) + "\n")
    sys.stdout.write(
        f"{sizes.clients} callers, {sizes.ends} ends a second: "
        f"{found['statements_per_second']:.1f} statements a second; results arrive after "
        f"{found['delay_p50_ms']:.1f} ms (median), {found['delay_p95_ms']:.1f} ms (95 %)\n"
    )


async def _measure(app: Freehold, sizes: Sizes) -> dict[str, float]:
    @app.task(name="waited_for")
    async def waited_for(number: int) -> int:
        return number

    times, waiting = Times(), waited_for.using(wait=WAIT_SECONDS)

    async def call(number: int) -> None:
        job_id = await waiting.acall(number)
        times.arrived[job_id] = time.monotonic()

    database = app._client.database
    session = CountingSession(database.async_session())
    database.async_session = lambda: session  # type: ignore[method-assign]
    callers = [asyncio.create_task(call(number)) for number in range(sizes.clients)]
    attempts = await asyncio.to_thread(_claim, app, sizes.clients)
    before, began = session.groups, time.monotonic()
    await _end_steadily(app, sizes, attempts, times)
    groups, seconds = session.groups - before, time.monotonic() - began
    await asyncio.to_thread(_end, app, attempts[len(times.ended) :])
    await asyncio.gather(*callers)
    delays = times.delays()
    return {
        "ends": len(delays),
        "statements_per_second": groups / seconds,
        "delay_p50_ms": 1000 * statistics.median(delays),
        "delay_p95_ms": 1000 * delays[int(0.95 * (len(delays) - 1))],
    }


async def _end_steadily(app: Freehold, sizes: Sizes, attempts: list[Attempt], times: Times) -> None:
    began = time.monotonic()
    count = min(len(attempts) - 1, max(1, int(sizes.ends * sizes.seconds)))
    for number, attempt in enumerate(attempts[:count]):
        await asyncio.sleep(began + number / sizes.ends - time.monotonic())
        times.ended[attempt.job_id] = time.monotonic()
        await asyncio.to_thread(_end, app, [attempt])


def _claim(app: Freehold, count: int) -> list[Attempt]:
    """The jobs of all callers, once these wait."""
    while len(app._client.results.waited_for()) < count:
        time.sleep(0.01)
    demand = QueueDemand("default", count)
    request = ClaimRequest(owner=OWNER, lease_seconds=WAIT_SECONDS, demands=(demand,))
    found: list[Attempt] = []
    while len(found) < count:
        found += app._client.store.claim(request)
    return found


def _end(app: Freehold, attempts: list[Attempt]) -> None:
    """Each with its own id as its result."""
    ends = [
        AttemptEnd(each, Outcome(kind=OutcomeKind.SUCCESS, result=str(each.job_id).encode()))
        for each in attempts
    ]
    lost: Any = app._client.store.finish(OWNER, ends).lost
    assert not lost, lost
