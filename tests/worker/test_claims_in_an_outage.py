"""An unreachable store is not polled in a tight loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from freehold.clock import VirtualClock
from freehold.errors import RowRefused, StoreUnavailable
from freehold.model.job import Attempt
from freehold.model.limit import Limit
from freehold.store.types import ClaimRequest, SetAside
from freehold.store.verbs.claim import ClaimCursors
from freehold.testing.virtual_loop import VirtualLoop
from tests.worker.lone_claimer import claimer_without_jobs

POLL_SECONDS = 1.0
OUTAGE_SECONDS = 20.0


class Unreachable:
    """Advances a cursor once, after which jobs may have appeared behind it in the second queue."""

    def __init__(self) -> None:
        self.claims = self.declarations = 0

    async def declare_limits(self, limits: Mapping[str, Limit]) -> None:
        self.declarations += 1
        raise StoreUnavailable("the connection was refused")

    async def ready_queues(self, after: str, limit: int) -> list[str]:
        raise AssertionError("its queues are given")

    async def claim(self, request: ClaimRequest, cursors: ClaimCursors) -> list[Attempt]:
        self.claims += 1
        if self.claims == 1:
            cursors["mail"].advance((0, 7))
        raise StoreUnavailable("the connection was refused")

    async def set_aside_ready(self, queue: str) -> list[SetAside]:
        raise NotImplementedError


def test_a_claimer_that_is_unsure_of_a_queue_does_not_hammer_an_unreachable_store() -> None:
    """Found by the simulation: it claimed every millisecond until the store came back."""
    store = Unreachable()
    claim_for_a_while(store)
    assert 2 <= store.claims <= OUTAGE_SECONDS / POLL_SECONDS + 2


class OneBrokenQueue(Unreachable):
    """No claim from the queue "default" succeeds, for a reason that no job can be paused for."""

    async def claim(self, request: ClaimRequest, cursors: ClaimCursors) -> list[Attempt]:
        if request.demands[0].queue == "default":
            raise RowRefused("a value is out of range")
        self.claims += 1
        return []

    async def set_aside_ready(self, queue: str) -> list[SetAside]:
        return []


def test_a_queue_that_cannot_be_claimed_from_does_not_hold_up_the_others() -> None:
    store = OneBrokenQueue()
    claim_for_a_while(store)
    assert store.claims >= 2


def test_no_job_is_claimed_before_the_limits_of_its_task_are_stored() -> None:
    store = Unreachable()
    claim_for_a_while(store, {"task:send": Limit(1)})
    assert store.claims == 0
    assert 2 <= store.declarations <= OUTAGE_SECONDS / POLL_SECONDS + 2


def claim_for_a_while(store: Unreachable, limits: Mapping[str, Limit] | None = None) -> None:
    async def outage() -> None:
        claimer = claimer_without_jobs(store, ("default", "mail"), POLL_SECONDS, limits)
        task = asyncio.create_task(claimer.run())
        await asyncio.sleep(OUTAGE_SECONDS)
        task.cancel()

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(VirtualClock())) as runner:
        runner.run(outage())
