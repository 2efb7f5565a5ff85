"""A store that cannot be reached is left in peace."""

from __future__ import annotations

import asyncio

from freehold.clock import VirtualClock
from freehold.errors import StoreUnavailable
from freehold.model.job import Attempt
from freehold.store.types import ClaimRequest
from freehold.telemetry import Telemetry
from freehold.testing.virtual_loop import VirtualLoop
from freehold.worker.claimer import Claimer

POLL_SECONDS = 1.0
OUTAGE_SECONDS = 20.0


class Unreachable:
    """Has answered once, and what it said leaves the claimer unsure of its second queue."""

    def __init__(self) -> None:
        self.asked = 0

    async def claim(self, ask: ClaimRequest) -> list[Attempt]:
        self.asked += 1
        assert ask.memory is not None
        if self.asked == 1:
            ask.memory.place("mail").advance(0, 7)
        raise StoreUnavailable("the connection was refused")


def test_a_claimer_that_is_unsure_of_a_queue_does_not_hammer_an_unreachable_store() -> None:
    """Found by the simulation: it asked again every millisecond, until the store came back."""
    store = Unreachable()

    async def suffer() -> None:
        claimer = Claimer(
            store,
            "w1",
            Telemetry(),
            queues=("default", "mail"),
            tasks=None,
            lease_seconds=30.0,
            poll_seconds=POLL_SECONDS,
            room=lambda: 5,
            soon=lambda: 5,
            take=lambda *_: None,
            is_listening=lambda: True,
            on_nothing=lambda: None,
            settle=lambda *_: None,
        )
        task = asyncio.create_task(claimer.run())
        await asyncio.sleep(OUTAGE_SECONDS)
        task.cancel()

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(VirtualClock())) as runner:
        runner.run(suffer())
    assert 2 <= store.asked <= OUTAGE_SECONDS / POLL_SECONDS + 2
