"""The demo after its check, while it serves the dashboard: jobs keep coming, and a visitor can kill
workers.

The load rises and falls, so that the manager starts and stops workers. Orders have steps, a sleep,
progress and log lines; one lane is blocked by a failed job and one workflow holds, for the remedies
of the overview.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from typing import Any

from freehold.app import Freehold
from freehold.lab.demo.flows import start_import, start_mailing
from freehold.lab.demo.load import ACCOUNTS, MAIL, REPORTS
from freehold.lab.demo.tasks import PREFIX
from freehold.lab.demo.worker_processes import LEASE_SECONDS, WorkerProcesses
from freehold.model.job import NewJob
from freehold.model.limit import Limit
from freehold.model.plural import count
from freehold.model.state import LEASED
from freehold.model.timing import Every
from freehold.operator import AsyncOperator
from freehold.store.types import JobFilter
from freehold.telemetry import log

ORDER = f"{PREFIX}order"
_AUTHOR = "demo"
#: A wave of the load: many jobs in its first half, few in its second.
_WAVE_SECONDS = 40


def define_order(app: Freehold) -> None:
    """A task with steps, as the page of a job shows them."""

    async def charge(number: int) -> dict[str, Any]:
        await asyncio.sleep(0.3)
        return {"receipt": f"r-{number}"}

    @app.task(name=ORDER)
    async def order(number: int, *, ctx: Any) -> str:
        """Charge, wait a moment, pack item by item."""
        ctx.log(f"order {number} begins, attempt {ctx.attempt}")
        receipt = await ctx.step("charge", charge, number)
        ctx.log(f"charged: {receipt['receipt']}")
        await ctx.sleep("cooling off", 4.0)
        for item in range(1, 21):
            await asyncio.sleep(0.35)
            ctx.progress(item, 20, f"packing item {item}")
            if item % 5 == 0:
                ctx.log(f"packed {item} of 20")
        return f"order {number} is packed"


class LivingDemo:
    """Enqueues until it is canceled. `kill_worker` is the button of the dashboard."""

    def __init__(self, app: Freehold, processes: WorkerProcesses) -> None:
        self._app = app
        self._processes = processes

    async def run(self) -> None:
        await self._prepare()
        second = 0
        while True:
            await self._app.aenqueue_many(self._jobs(second))
            if second % _WAVE_SECONDS == 0:
                await start_import(self._app, second // _WAVE_SECONDS + 1)
                await start_mailing(self._app, second)
            second += 1
            await asyncio.sleep(1.0)

    async def _prepare(self) -> None:
        operator = self._app.aoperator
        await operator.set_queue_limit(MAIL, Limit(6), by=_AUTHOR)
        report = self._new("steady", REPORTS, 0, tags=("hourly",))
        await operator.put_schedule("hourly-report", Every(seconds=20.0), report, by=_AUTHOR)
        blocked = [self._new("broken", ACCOUNTS, 0, target="account-99")]
        behind = [self._new("quick", ACCOUNTS, n, target="account-99") for n in range(1, 4)]
        await self._app.aenqueue_many(blocked + behind)
        await start_import(self._app, 0, breaks=True)

    def _jobs(self, second: int) -> list[NewJob]:
        is_high = second % _WAVE_SECONDS < _WAVE_SECONDS // 2
        kinds = ["quick", "steady", "steady", "flaky"] * (6 if is_high else 1)
        jobs = [
            self._new(kind, (MAIL, REPORTS)[number % 3 // 2], second, meta={"region": "eu"})
            for number, kind in enumerate(kinds)
        ]
        for number in range(3 if is_high else 1):
            lane = f"account-{(second + 2 * number) % 6 + 1}"
            jobs.append(self._new("steady", ACCOUNTS, second, target=lane))
        if second % (2 if is_high else 6) == 0:
            task = self._app.tasks.get(ORDER).using(queue=ACCOUNTS, tags=("order",))
            jobs.append(task.prepare(1000 + second))
        if second % 9 == 0:
            jobs.append(self._new("broken", MAIL, second))
        return jobs

    def _new(self, kind: str, queue: str, number: int, **options: Any) -> NewJob:
        return self._app.tasks.get(PREFIX + kind).using(queue=queue, **options).prepare(number)

    async def kill_worker(self, pid: int | None) -> str:
        """Only processes of the demo."""
        operator = self._app.aoperator
        pids = {w.pid: w.owner for w in await operator.workers() if w.pid in self._processes.alive}
        held = await _held(operator)
        chosen = max(pids, key=lambda each: held[pids[each]], default=None) if pid is None else pid
        if chosen is None or chosen not in pids:
            return "No such worker of the demo is alive."
        self._processes.send(chosen, signal.SIGKILL)
        log.warning("a visitor killed the worker process %d", chosen)
        jobs = count(held[pids[chosen]], "job")
        return (
            f"Worker {pids[chosen]} was killed with SIGKILL while it held {jobs}. They run again "
            f"within {LEASE_SECONDS:g} s, and the manager starts another worker."
        )


async def _held(operator: AsyncOperator) -> Counter[str]:
    leased = await operator.jobs(JobFilter(states=LEASED, limit=1000))
    return Counter(job.lease.owner for job in leased.jobs if job.lease is not None)
