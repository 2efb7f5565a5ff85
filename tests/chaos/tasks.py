"""The tasks: each follows its plan and records what it did."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from freehold import Freehold, Retry
from freehold.errors import Refused
from freehold.lab.simulation.handler_parts import HandlerParts
from freehold.lab.simulation.step_plans import Part
from freehold.lab.simulation.tasks import (
    Hopeless,
    end_as_planned,
    how_it_ended,
    tasks_of_each_policy,
)
from freehold.model.job import NewJob
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
        self.tasks["member"] = app.task(name="member", retry=retry)(self._handler_of_member())
        self.tasks["stepped"] = app.task(name="stepped", retry=retry)(self._handler_with_parts())
        self._parts = None if recorder is None else HandlerParts(recorder.record, self._child)

    def _handler(self, *, fenced: bool = False) -> Callable[..., Any]:
        async def handler(ctx: Context, call: str, runs: list[Run]) -> Any:
            return await self._attempt(ctx, runs, fenced)

        return handler

    def _handler_of_member(self) -> Callable[..., Any]:
        """``adds``: how many members it adds to its batch, or nodes to its workflow."""

        async def handler(
            ctx: Context, call: str, runs: Sequence[Run] = (), adds: int = 0, given: Any = None
        ) -> Any:
            assert self._recorder is not None
            if given is not None:
                self._recorder.record("given", ctx.job.job_id, ctx.job.token, value=given)
            return await self._attempt(ctx, list(runs), False, adds=adds, call=call)

        return handler

    def _handler_with_parts(self) -> Callable[..., Any]:
        async def handler(ctx: Context, call: str, runs: list[Run], parts: list[Part]) -> Any:
            return await self._attempt(ctx, runs, False, parts=parts)

        return handler

    def _child(self, call: str) -> NewJob:
        """A job that is gathered. Some fail at last."""
        chance = random.Random(call)
        runs = [(0.0, chance.choice(("return", "return", "error", "fail")))]
        task = self.tasks["member"].using(max_attempts=chance.choice((1, 3, 3)))
        return task.prepare_json(msgspec.json.encode({"call": call, "runs": runs}))

    async def _add_members(self, ctx: Context, call: str, count: int) -> None:
        """A repeated attempt adds again. A canceled flow takes none."""
        calls = [f"{call}+{number}" for number in range(count)]
        member = self.tasks["member"]
        with contextlib.suppress(Refused):
            if ctx.job.policy.node is None:
                jobs = [member.prepare_json(msgspec.json.encode({"call": c})) for c in calls]
                await ctx.batch.add(jobs)
                return
            # After this node, and after the first one, which may have ended.
            after = sorted({call.rpartition(".")[2], "0"})
            for each in calls:
                await ctx.workflow.add(member, each, name=each, after=after, on_failure="run")

    async def _attempt(
        self,
        ctx: Context,
        runs: list[Run],
        fenced: bool,
        *,
        parts: Sequence[Part] = (),
        adds: int = 0,
        call: str = "",
    ) -> Any:
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
            if adds and not self._healed.exists():
                await self._add_members(ctx, call, adds)
            # An attempt that is to fail does so further on than the one before it.
            for part in parts if how == "return" else parts[: job.number]:
                assert self._parts is not None
                await self._parts.run(ctx, part)
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
