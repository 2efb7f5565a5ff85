"""Handlers with steps, for tests of both kinds of handlers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from freehold import Context
from tests.worker.local_worker import LocalWorker

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
