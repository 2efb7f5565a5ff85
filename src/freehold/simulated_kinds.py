"""Simulated kinds as tasks that any worker can run, named `sim.<kind>`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from freehold.model import payload
from freehold.model.handler_exceptions import Cancel
from freehold.model.retry import Retry
from freehold.model.simulated_kind import SimulatedKind

if TYPE_CHECKING:
    from freehold.app import Freehold

PREFIX = "sim."


class SimulatedFailure(Exception):
    """A kind failed, as configured."""


class SimulatedRefusal(Exception):
    """A kind failed without retry, as configured."""


#: Retries are quick, so that a simulation does not wait.
RETRY = Retry(max_attempts=5, base_seconds=0.2, cap_seconds=5.0, give_up_on=(SimulatedRefusal,))


def register(app: Freehold, kinds: Iterable[SimulatedKind]) -> None:
    """Add a task for every kind to the app."""
    for kind in kinds:
        app.task(name=PREFIX + kind.name, retry=RETRY)(handler(kind))


def handler(kind: SimulatedKind) -> Any:
    """The function of this kind's task."""

    async def simulate(input: Any = None, *, ctx: Any) -> dict[str, Any]:
        text = payload.encode("the input", input).decode()
        seconds = kind.seconds(text)
        await asyncio.sleep(seconds)
        match kind.ends(ctx.attempt):
            case "fail" if kind.retryable:
                raise SimulatedFailure(f"{kind.name} fails at attempt {ctx.attempt}")
            case "fail":
                raise SimulatedRefusal(f"{kind.name} fails without retry")
            case "cancel":
                raise Cancel(f"{kind.name} cancels itself")
        return {"kind": kind.name, "milliseconds": round(seconds * 1000)}

    simulate.__qualname__ = f"simulate_{kind.name}"
    return simulate
