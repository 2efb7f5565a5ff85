"""A worker process, forked from a parent that has everything loaded: it is up in no time."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from freehold import Freehold
from freehold.telemetry import Telemetry
from freehold.worker.config import WorkerSettings
from freehold.worker.event_loop import run_loop
from freehold.worker.worker import Worker
from tests.chaos.pen import Pen
from tests.chaos.plan import Plan
from tests.chaos.pulse import take_pulse
from tests.chaos.tasks import Tasks

_COUNTED = ("stale_writes", "lost_leases", "recovered", "lanes_freed")
_LOOK_SECONDS = 0.5


def work(plan: Plan, url: str, name: str) -> None:
    """Until drained, or killed."""
    pen = Pen(plan.books, name)
    app = Freehold(url)
    Tasks(app, plan.healed, pen)
    code = run_loop(_work(plan, app, pen))
    pen.note("exited", code=code)
    app.close()
    sys.stdout.flush()
    os._exit(code)


async def _work(plan: Plan, app: Freehold, pen: Pen) -> int:
    telemetry = Telemetry()
    settings = WorkerSettings(
        concurrency=plan.concurrency,
        lease_seconds=plan.lease_seconds,
        poll_seconds=0.2,
        grace_seconds=plan.grace_seconds,
        request_poll_seconds=1.0,
    )
    worker = Worker(app.database, app.tasks, settings, owner=pen.name, telemetry=telemetry)
    pen.note("begun", pid=os.getpid())
    take_pulse(pen, plan.lease_seconds)
    counting = asyncio.create_task(_count(telemetry, pen))
    try:
        return await worker.run()
    finally:
        counting.cancel()
        await app.database.aclose()


async def _count(telemetry: Telemetry, pen: Pen) -> None:
    """A killed worker tells nobody what it had counted: so it says so as it goes."""
    before: dict[str, Any] = {}
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        counts: dict[str, Any] = {name: telemetry.total(name) for name in _COUNTED}
        if counts != before:
            pen.note("counted", **counts)
            before = counts
