"""No context variable leaks into another job, and no lease outlives a cancelled or hung worker."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from freehold import Context, State
from freehold.model.job import StopRequest
from freehold.model.worker_info import Heartbeat
from freehold.store.types import LeaseKey, Renewed
from freehold.telemetry import Telemetry
from freehold.worker.config import WorkerSettings
from freehold.worker.heartbeat import HeartbeatSchedule
from freehold.worker.held_leases import HeldLease, HeldLeases, StopReason
from freehold.worker.lease_renewer import LeaseRenewer
from tests.stores import SqliteUnderTest
from tests.worker.local_worker import LocalWorker, kinds

last_job: contextvars.ContextVar[int | None] = contextvars.ContextVar("last_job", default=None)


@pytest.mark.requirement("S1.3")
@kinds
@pytest.mark.either_store
def test_no_job_sees_the_context_variables_of_another(local_worker: LocalWorker, kind: str) -> None:
    seen: list[int | None] = []

    def reads(ctx: Context) -> None:
        seen.append(last_job.get())
        last_job.set(ctx.job.job_id)

    async def areads(ctx: Context) -> None:
        reads(ctx)

    task = local_worker.app.task(name="reads")(areads if kind == "coroutine" else reads)
    local_worker.app.enqueue_many([task.prepare() for _ in range(50)])
    local_worker.run(concurrency=3)
    assert seen == [None] * 50


@pytest.mark.requirement("S4.11", "P13")
def test_a_worker_that_is_cancelled_leaves_nothing_leased(local_worker: LocalWorker) -> None:
    started = threading.Event()

    async def waits_for_ever() -> None:
        started.set()
        await asyncio.Event().wait()

    job_id = local_worker.add(waits_for_ever)

    async def scenario() -> None:
        working = asyncio.create_task(local_worker.app.arun_worker(concurrency=1))
        await asyncio.to_thread(started.wait, 20)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        await local_worker.app._database.aclose()

    asyncio.run(scenario())
    job = local_worker.job(job_id)
    assert (job.state, job.attempt, job.lease) == (State.QUEUED, 0, None)


_HEARTBEAT = Heartbeat(owner="w1", host="h", pid=1, concurrency=1, queues=(), tasks=(), version="1")


class _HungStore:
    """Accepts statements and never returns, as behind a network that drops every packet."""

    async def renew(self, *_: Any) -> Renewed:
        return await asyncio.Future()

    async def mark_running(self, *_: Any) -> tuple[int, ...]:
        return await asyncio.Future()

    async def heartbeat(self, *_: Any) -> None:
        await asyncio.Future()

    async def stop_requests(self, _owner: str) -> dict[LeaseKey, StopRequest]:
        return await asyncio.Future()


@pytest.mark.requirement("S0.6", "P1")
def test_no_handler_runs_past_its_lease_when_a_renewal_hangs() -> None:
    sqlite = SqliteUnderTest()
    sqlite.add()
    attempt = sqlite.claim_one()

    async def scenario() -> None:
        loop, leases = asyncio.get_running_loop(), HeldLeases()
        lease = HeldLease(attempt, valid_until=loop.time() + 0.5)
        stopped = asyncio.Event()
        lease.on_stop = lambda _reason: stopped.set()
        leases.add(lease)
        renewer = LeaseRenewer(
            _HungStore(),
            "w1",
            leases,
            HeartbeatSchedule(lambda: _HEARTBEAT),
            Telemetry(),
            WorkerSettings(lease_timeout_seconds=0.5, request_poll_seconds=0.05),
        )
        renewing = asyncio.create_task(renewer.run())
        async with asyncio.timeout(10):
            await stopped.wait()
        assert lease.stop_reason is StopReason.LEASE_LOST
        assert loop.time() < lease.valid_until
        renewing.cancel()

    asyncio.run(scenario())
    sqlite.database.close()
