"""Handlers with steps, for tests of both kinds of handlers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from freehold import Context, LeaseLost
from freehold.store.types import LeaseKey, NewStep
from tests.worker.local_worker import AT_ONCE, LocalWorker

BodyOf = Callable[[Any], Any]


def durable(kind: str, *steps: tuple[str, Callable[..., Any]], then: BodyOf) -> Callable[..., Any]:
    """A handler with these steps, a coroutine or a plain function; ``then`` gets their values."""

    async def coroutine(ctx: Context) -> Any:
        values = []
        for name, function in steps:

            @functools.wraps(function)
            async def call(function: Callable[..., Any] = function) -> Any:
                return function()

            values.append(await ctx.step(name, call))
        return then(values)

    def plain(ctx: Context) -> Any:
        return then([ctx.step(name, function) for name, function in steps])

    return coroutine if kind == "coroutine" else plain


def error_of(local_worker: LocalWorker, job_id: int) -> str:
    report = local_worker.job(job_id).report
    assert report is not None
    assert report.error is not None
    return f"{report.error.type}: {report.error.message}"


def the_old_owner_of_a_step_loses(local_worker: LocalWorker, kind: str) -> None:
    """Two owners write the same step: the old one gets LeaseLost, and its value is nowhere. Needs
    the fixture `slow_renewer`."""
    seen: list[str] = []
    store = local_worker.app._client.store

    def theirs(job_id: int) -> str:
        thief = local_worker.steal(job_id)
        key = LeaseKey(thief.job_id, thief.token)
        assert store.put_steps("thief", [NewStep(key, "charge", 1, value=b'"new"')]) == ()
        return "old"

    async def coroutine(ctx: Context) -> None:
        async def call() -> str:
            return theirs(ctx.job.job_id)

        try:
            await ctx.step("charge", call)
        except LeaseLost:
            seen.append("LeaseLost")
        assert not ctx.lease.held

    def plain(ctx: Context) -> None:
        try:
            ctx.step("charge", theirs, ctx.job.job_id)
        except LeaseLost:
            seen.append("LeaseLost")
        assert not ctx.lease.held

    job_id = local_worker.add(coroutine if kind == "coroutine" else plain, retry=AT_ONCE)
    worker = local_worker.run()
    assert seen == ["LeaseLost"]
    assert [step.value for step in store.read_steps(job_id)] == ['"new"']
    job = local_worker.job(job_id)
    assert job.lease is not None
    assert job.lease.owner == "thief"
    assert worker.telemetry.total("stale_writes", "step") == 1
