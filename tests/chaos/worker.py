"""A worker process, forked from a parent with all modules loaded, so that it starts fast."""

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
from tests.chaos.plan import Plan
from tests.chaos.recorder import Recorder
from tests.chaos.starvation import watch_for_starvation
from tests.chaos.tasks import Tasks

_COUNTED = ("stale_writes", "lost_leases", "recovered", "lanes_freed")
_CHECK_SECONDS = 0.5


def work(plan: Plan, url: str, name: str) -> None:
    """Runs until it is drained or killed."""
    recorder = Recorder(plan.record_folder, name)
    app = Freehold(url)
    Tasks(app, plan.healed, recorder)
    code = run_loop(_work(plan, app, recorder))
    recorder.record("exited", code=code)
    app.close()
    sys.stdout.flush()
    os._exit(code)


async def _work(plan: Plan, app: Freehold, recorder: Recorder) -> int:
    telemetry = Telemetry()
    settings = WorkerSettings(
        concurrency=plan.concurrency,
        lease_timeout_seconds=plan.lease_seconds,
        poll_interval_ms=200.0,
        shutdown_grace_seconds=plan.grace_seconds,
        request_poll_seconds=1.0,
    )
    worker = Worker(app._database, app.tasks, settings, owner=recorder.name, telemetry=telemetry)
    recorder.record("begun", pid=os.getpid())
    watch_for_starvation(recorder, plan.lease_seconds)
    counting = asyncio.create_task(_count(telemetry, recorder))
    try:
        return await worker.run()
    finally:
        counting.cancel()
        await app._database.aclose()


async def _count(telemetry: Telemetry, recorder: Recorder) -> None:
    """Records the counters all the time, because a killed worker cannot record them at its end."""
    before: dict[str, Any] = {}
    while True:
        await asyncio.sleep(_CHECK_SECONDS)
        counts: dict[str, Any] = {name: telemetry.total(name) for name in _COUNTED}
        if counts != before:
            recorder.record("counted", **counts)
            before = counts
