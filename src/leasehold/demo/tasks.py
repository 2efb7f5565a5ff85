"""The simulated kinds as tasks of the demo, which also say aloud what they do: see `record`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from leasehold.app import Leasehold
from leasehold.demo.record import say
from leasehold.kinds import RETRY, handler
from leasehold.model.ending import Cancel
from leasehold.model.kind import Kind

PREFIX = "demo."


def define(app: Leasehold, kinds: Iterable[Kind]) -> None:
    for kind in kinds:
        app.task(name=PREFIX + kind.name, retry=RETRY)(_heard(kind))


def _heard(kind: Kind) -> Any:
    simulate = handler(kind)

    async def heard(input: Any = None, *, ctx: Any) -> Any:
        job, attempt = ctx.job.job_id, ctx.attempt
        say(job, attempt, "started")
        try:
            result = await simulate(input, ctx=ctx)
        except Cancel:
            say(job, attempt, "canceled")
            raise
        except asyncio.CancelledError:
            say(job, attempt, "stopped")
            raise
        except Exception:
            say(job, attempt, "failed")
            raise
        say(job, attempt, "succeeded")
        return result

    heard.__qualname__ = f"heard_{kind.name}"
    return heard
