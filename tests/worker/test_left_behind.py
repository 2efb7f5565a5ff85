"""What must not be left behind: one job's context in another, a lease of a cancelled worker."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from freehold import Context, State
from freehold.model.job import Request
from freehold.model.worker_info import Heartbeat
from freehold.store.types import LeaseKey, Renewed
from freehold.telemetry import Telemetry
from freehold.worker.heartbeat import HeartbeatSchedule
from freehold.worker.held_leases import HeldLease, HeldLeases, StopReason
from freehold.worker.lease_renewer import LeaseRenewer
from tests.stores import SqliteUnderTest
from tests.worker.workshop import Workshop, kinds

whose: contextvars.ContextVar[int | None] = contextvars.ContextVar("whose", default=None)


@pytest.mark.requirement("S1.3")
@kinds
def test_no_job_sees_the_context_of_another(workshop: Workshop, kind: str) -> None:
    seen: list[int | None] = []

    def look(ctx: Context) -> None:
        seen.append(whose.get())
        whose.set(ctx.job.job_id)

    async def alook(ctx: Context) -> None:
        look(ctx)

    task = workshop.app.task(name="look")(alook if kind == "coroutine" else look)
    workshop.app.enqueue_many([task.prepare() for _ in range(50)])
    workshop.run(concurrency=3)
    assert seen == [None] * 50


@pytest.mark.requirement("S4.11", "P13")
def test_a_worker_that_is_cancelled_leaves_nothing_leased(workshop: Workshop) -> None:
    started = threading.Event()

    async def waits_for_ever() -> None:
        started.set()
        await asyncio.Event().wait()

    job_id = workshop.add(waits_for_ever)

    async def scene() -> None:
        working = asyncio.create_task(workshop.app.arun_worker(concurrency=1))
        await asyncio.to_thread(started.wait, 20)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        await workshop.app.database.aclose()

    asyncio.run(scene())
    job = workshop.job(job_id)
    assert (job.state, job.attempt, job.lease) == (State.QUEUED, 0, None)


_WORD = Heartbeat(owner="w1", host="h", pid=1, concurrency=1, queues=(), tasks=(), version="1")


class _HungStore:
    """Takes questions and never answers: as behind a wire that swallows every packet."""

    async def renew(self, *_: Any) -> Renewed:
        return await asyncio.Future()

    async def start(self, *_: Any) -> tuple[int, ...]:
        return await asyncio.Future()

    async def beat(self, *_: Any) -> None:
        await asyncio.Future()

    async def requests(self, _owner: str) -> dict[LeaseKey, Request]:
        return await asyncio.Future()


@pytest.mark.requirement("S0.6", "P1")
def test_a_renewal_that_never_returns_keeps_no_handler_running_past_its_lease() -> None:
    sqlite = SqliteUnderTest()
    sqlite.add()
    attempt = sqlite.claim_one()

    async def scene() -> None:
        loop, hand = asyncio.get_running_loop(), HeldLeases()
        held = HeldLease(attempt, valid_until=loop.time() + 0.5)
        told = asyncio.Event()
        held.on_stop = lambda _reason: told.set()
        hand.take(held)
        keeper = LeaseRenewer(
            _HungStore(),
            "w1",
            hand,
            HeartbeatSchedule(lambda: _WORD),
            Telemetry(),
            lease_seconds=0.5,
            request_poll_seconds=0.05,
        )
        keeping = asyncio.create_task(keeper.run())
        async with asyncio.timeout(10):
            await told.wait()
        assert held.stop_reason is StopReason.LEASE_LOST
        assert loop.time() < held.valid_until
        keeping.cancel()

    asyncio.run(scene())
    sqlite.database.close()
