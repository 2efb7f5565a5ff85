"""The tasks of the simulation: each follows its plan and records what it did."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from freehold.app import Freehold
from freehold.client import JobHandle
from freehold.errors import OutcomeUnknown, Refused
from freehold.lab.simulation.handler_parts import CommitUnknown, HandlerParts
from freehold.lab.simulation.step_plans import Part
from freehold.model.handler_exceptions import (
    AttemptEnded,
    Cancel,
    Fail,
    HandlerException,
    Pause,
    RetryLater,
    Snooze,
)
from freehold.model.job import NewJob
from freehold.model.retry import Retry
from freehold.tasks import Registry, Task
from freehold.worker.execution.context import Context

STEP_SECONDS = 0.3
SNOOZE_SECONDS = 0.9
#: How long unplanned runs take; some are long enough to overlap with late writes.
LATER_RUNS = (0.05, 1.8, 0.05, 0.9)
LATER_SECONDS = 0.6


#: A task that older workers do not know, and one that had other parameters before.
NEWER, RESHAPED = "newer", "reshaped"


class RetryableError(Exception):
    """An error that a retry may cure."""


class Hopeless(Exception):
    """An error that no retry will cure."""


def tasks_of_each_policy(
    app: Freehold, retry: Retry, handler: Callable[..., Callable[..., Any]]
) -> dict[str, Task[..., Any, JobHandle]]:
    """``handler(fenced=)`` makes the handlers."""
    return {
        "plain": app.task(name="plain", retry=retry)(handler()),
        "strict": app.task(name="strict", retry=retry, on_lease_expired="fail")(handler()),
        "kept": app.task(name="kept", retry=retry, on_cancel="pause", on_drain="pause")(handler()),
        "skipping": app.task(
            name="skipping",
            retry=retry,
            on_cancel="cancel",
            on_drain="requeue",
            lane_on_failure="skip",
        )(handler()),
        "fenced": app.task(name="fenced", retry=retry)(handler(fenced=True)),
    }


#: Called with kind, job, token, attempt, info.
RecordFunction = Callable[..., None]


class Handlers:
    """Registers the tasks and runs them."""

    def __init__(
        self,
        app: Freehold,
        record: RecordFunction,
        handlers_of: Callable[[Context], Handlers] | None = None,
    ) -> None:
        """``handlers_of``: with tenants, returns the handlers of an attempt's tenant."""
        self._record = record
        self._handlers_of = handlers_of or (lambda _ctx: self)
        self._runs: Counter[int] = Counter()
        #: After healing every run succeeds.
        self.is_healed = False
        retry = Retry(base_seconds=0.4, cap_seconds=3.0, give_up_on=(Hopeless,))
        self.tasks = tasks_of_each_policy(app, retry, self._handler)
        for name in (NEWER, RESHAPED):
            self.tasks[name] = app.task(name=name, retry=retry)(self._handler())
        self.tasks["member"] = app.task(name="member", retry=retry)(self._handler_of_member())
        self.tasks["stepped"] = app.task(name="stepped", retry=retry)(self._handler_with_parts())
        self._parts = HandlerParts(record, self._prepare_member)

    def _handler(self, *, fenced: bool = False) -> Callable[..., Any]:
        async def handler(ctx: Context, call: str, runs: list[tuple[float, str]]) -> Any:
            return await self._handlers_of(ctx)._attempt(ctx, call, runs, fenced)

        return handler

    def _handler_of_member(self) -> Callable[..., Any]:
        async def handler(
            ctx: Context,
            call: str,
            runs: tuple[tuple[float, str], ...] = (),
            adds: int = 0,
            given: Any = None,
        ) -> Any:
            own = self._handlers_of(ctx)
            if given is not None:
                own._record("given", ctx.job.job_id, ctx.job.token, value=given)
            if adds and not own.is_healed:
                await own._add_members(ctx, call, adds)
            return await own._attempt(ctx, call, list(runs), False)

        return handler

    async def _add_members(self, ctx: Context, call: str, count: int) -> None:
        """A repeated attempt adds again. A canceled flow takes none."""
        calls = [f"{call}+{number}" for number in range(count)]
        policy = ctx.job.policy
        with contextlib.suppress(Refused):
            if policy.node is None:
                await ctx.batch.add([self._prepare_member(each) for each in calls])
                return
            # After this node, and after the first one, which may have ended.
            after = sorted({call.rpartition(".")[2], "0"})
            for each in calls:
                await ctx.workflow.add(
                    self.tasks["member"], each, name=each, after=after, on_failure="run"
                )

    def _prepare_member(self, call: str) -> NewJob:
        return self.tasks["member"].prepare_json(msgspec.json.encode({"call": call}))

    def _handler_with_parts(self) -> Callable[..., Any]:
        async def handler(
            ctx: Context, call: str, runs: list[tuple[float, str]], parts: list[Part]
        ) -> Any:
            return await self._handlers_of(ctx)._attempt(ctx, call, runs, False, parts)

        return handler

    async def _attempt(
        self,
        ctx: Context,
        call: str,
        runs: list[tuple[float, str]],
        fenced: bool,
        parts: Sequence[Part] = (),
    ) -> Any:
        job = ctx.job
        seconds, how = self._plan(job.job_id, runs)
        self._record(
            "started",
            job.job_id,
            job.token,
            job.number,
            target=job.target,
            queue=job.queue,
            owner=job.owner,
            timeout=job.timeout_seconds,
            fenced=fenced,
            tenant=ctx.tenant,
            made_by=None if ctx.tenant is None else call,
        )
        try:
            await self._run_parts(ctx, parts, how)
            result = await self._work(ctx, seconds, how, fenced)
        except asyncio.CancelledError:
            self._record("ended", job.job_id, job.token, how="stopped", why=str(ctx.stop_reason))
            raise
        except BaseException as error:
            delay = getattr(error, "delay_seconds", None)
            how = how_it_ended(error, fenced=fenced)
            self._record("ended", job.job_id, job.token, how=how, delay=delay)
            raise
        self._record("ended", job.job_id, job.token, how="returned")
        return result

    def _plan(self, job_id: int, runs: list[tuple[float, str]]) -> tuple[float, str]:
        number = self._runs[job_id]
        self._runs[job_id] += 1
        if self.is_healed:
            return 0.05, "return"
        if number >= len(runs):
            return LATER_RUNS[job_id % len(LATER_RUNS)], "return"
        return runs[number]

    async def _run_parts(self, ctx: Context, parts: Sequence[Part], how: str) -> None:
        """A run that is to fail does so further on than the one before it."""
        if how != "return":
            parts = parts[: self._runs[ctx.job.job_id]]
        for part in parts:
            await self._parts.run(ctx, part)

    async def _work(self, ctx: Context, seconds: float, how: str, fenced: bool) -> Any:
        ctx.log("begins")
        while seconds > 0:
            await asyncio.sleep(min(seconds, STEP_SECONDS))
            seconds -= STEP_SECONDS
            self._record("step", ctx.job.job_id, ctx.job.token, held=ctx.lease.held)
        result = {"token": ctx.lease.token}
        if fenced and how == "return":
            async with ctx.transaction(result=result):
                await asyncio.sleep(0)
            return None
        end_as_planned(how, LATER_SECONDS, SNOOZE_SECONDS)
        return result


def tasks_before_the_deploy(tasks: Registry) -> Registry:
    """The tasks of an older worker. Jobs of the reshaped task do not fit its code."""
    older = Registry()
    for task in tasks:
        if task.name not in (NEWER, RESHAPED):
            older.add(task)
    app = Freehold("sqlite://:memory:", schema="freehold")

    @app.task(name=RESHAPED)
    async def reshaped(call: str, pages: int) -> None:
        raise AssertionError(f"{call} was run with {pages} pages")

    older.add(reshaped)
    return older


def end_as_planned(how: str, later_seconds: float, snooze_seconds: float) -> None:
    match how:
        case "error":
            raise RetryableError("as planned")
        case "give_up":
            raise Hopeless("as planned")
        case "fail":
            raise Fail("as planned")
        case "later":
            raise RetryLater(later_seconds, reason="as planned")
        case "snooze":
            raise Snooze(snooze_seconds)
        case "pause":
            raise Pause("as planned")
        case "cancel":
            raise Cancel("as planned")


def how_it_ended(error: BaseException, *, fenced: bool) -> str:
    if isinstance(error, HandlerException):
        return type(error).__name__.lower()
    if isinstance(error, AttemptEnded):
        return "suspended"
    if isinstance(error, CommitUnknown) or (fenced and isinstance(error, OutcomeUnknown)):
        return "unknown"
    return "hopeless" if isinstance(error, Hopeless) else "error"
