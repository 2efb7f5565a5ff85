"""The simulated kinds as tasks of the demo, which also write to the handler log."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from freehold.app import Freehold
from freehold.lab.demo.handler_log import append
from freehold.model.handler_exceptions import Cancel
from freehold.model.simulated_kind import SimulatedKind
from freehold.simulated_kinds import RETRY, handler

PREFIX = "demo."


def define(app: Freehold, kinds: Iterable[SimulatedKind]) -> None:
    for kind in kinds:
        app.task(name=PREFIX + kind.name, retry=RETRY)(_recorded(kind))


def _recorded(kind: SimulatedKind) -> Any:
    simulate = handler(kind)

    async def recorded(input: Any = None, *, ctx: Any) -> Any:
        job, attempt = ctx.job.job_id, ctx.attempt
        append(job, attempt, "started")
        try:
            result = await simulate(input, ctx=ctx)
        except Cancel:
            append(job, attempt, "canceled")
            raise
        except asyncio.CancelledError:
            append(job, attempt, "stopped")
            raise
        except Exception:
            append(job, attempt, "failed")
            raise
        append(job, attempt, "succeeded")
        return result

    recorded.__qualname__ = f"heard_{kind.name}"
    return recorded
