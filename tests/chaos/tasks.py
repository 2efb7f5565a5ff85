"""The tasks: each follows its plan and records what it did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from freehold import Freehold, Retry
from freehold.lab.simulation.tasks import (
    Hopeless,
    end_as_planned,
    how_it_ended,
    tasks_of_each_policy,
)
from freehold.worker.execution.context import Context
from tests.chaos.recorder import Recorder

STEP_SECONDS = 0.2
LATER_SECONDS = 0.3
SNOOZE_SECONDS = 0.5
#: One attempt of a job: how long it takes, and how it ends.
Run = tuple[float, str]


class Tasks:
    """Registers the tasks in an app. Only workers have a recorder; producers run no handlers."""

    def __init__(self, app: Freehold, healed: Path, recorder: Recorder | None = None) -> None:
        self._healed = healed
        self._recorder = recorder
        self._snoozed: set[int] = set()
        retry = Retry(base_seconds=0.2, cap_seconds=2.0, give_up_on=(Hopeless,))
        self.tasks = tasks_of_each_policy(app, retry, self._handler)

    def _handler(self, *, fenced: bool = False) -> Callable[..., Any]:
        async def handler(ctx: Context, call: str, runs: list[Run]) -> Any:
            return await self._attempt(ctx, runs, fenced)

        return handler

    async def _attempt(self, ctx: Context, runs: list[Run], fenced: bool) -> Any:
        assert self._recorder is not None
        job, record = ctx.job, self._recorder.record
        record(
            "started",
            job.job_id,
            job.token,
            job.number,
            target=job.target,
            queue=job.queue,
            owner=job.owner,
            timeout=job.timeout_seconds,
            fenced=fenced,
        )
        seconds, how = self._run(job.job_id, job.number, runs)
        try:
            result = await self._work(ctx, seconds, how, fenced)
        except asyncio.CancelledError:
            record("ended", job.job_id, job.token, how="stopped", why=str(ctx.stop_reason))
            raise
        except BaseException as error:
            delay = getattr(error, "delay_seconds", None)
            record(
                "ended", job.job_id, job.token, how=how_it_ended(error, fenced=fenced), delay=delay
            )
            raise
        record("ended", job.job_id, job.token, how="returned")
        return result

    def _run(self, job_id: int, attempt: int, runs: list[Run]) -> Run:
        """Attempts beyond the plan succeed. A snooze is not counted as an attempt, so each process
        takes it once."""
        if attempt > len(runs) or self._healed.exists():
            return 0.0, "return"
        seconds, how = runs[attempt - 1]
        if how == "snooze":
            if job_id in self._snoozed:
                return 0.0, "return"
            self._snoozed.add(job_id)
        return seconds, how

    async def _work(self, ctx: Context, seconds: float, how: str, fenced: bool) -> Any:
        assert self._recorder is not None
        while seconds > 0:
            await asyncio.sleep(min(seconds, STEP_SECONDS))
            seconds -= STEP_SECONDS
            self._recorder.record("step", ctx.job.job_id, ctx.job.token, held=ctx.lease.held)
        result = {"token": ctx.lease.token}
        if fenced and how == "return":
            async with ctx.transaction(result=result):
                await asyncio.sleep(0)
            return None
        end_as_planned(how, LATER_SECONDS, SNOOZE_SECONDS)
        return result
