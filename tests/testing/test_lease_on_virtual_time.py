"""Leases of a real worker on virtual time: renewed, given up, lost, recovered."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise

import pytest

from freehold import Retry
from freehold.model.history import EventKind
from freehold.store.types import ClaimRequest, QueueDemand
from freehold.worker.execution.context import Context
from freehold.worker.held_leases import HeldLease, HeldLeases, StopReason
from freehold.worker.lease_renewer import LeaseRenewer
from tests.testing.virtual_app import VirtualApp, crash

STEAL = "update job set lease_owner = 'thief', lease_token = lease_token + 1"


def steal(virtual: VirtualApp) -> None:
    """Gives every leased job to another owner, without its worker's knowledge."""
    with virtual.database._engine.transaction() as connection:
        connection.execute(STEAL)


class HandlerTrace:
    """Records the starts and stops of a handler."""

    def __init__(self, virtual: VirtualApp) -> None:
        self.ran: list[float] = []
        self.stopped: list[tuple[float, StopReason | None, bool]] = []

        @virtual.app.task(name="long")
        async def long(seconds: float, *, ctx: Context | None = None) -> None:
            assert ctx is not None
            loop = asyncio.get_running_loop()
            began = loop.time()
            self.ran.append(began)
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                self.stopped.append((loop.time() - began, ctx.stop_reason, ctx.lease.held))
                raise

        self.task = long


@pytest.mark.requirement("S1.5", "S3.5", "S0.5")
def test_a_healthy_job_of_twelve_minutes_keeps_a_lease_of_thirty_seconds(
    virtual: VirtualApp,
) -> None:
    trace = HandlerTrace(virtual)

    async def scenario() -> None:
        async with virtual.working(lease_timeout_seconds=30):
            job = await trace.task.aenqueue(720)
            took = await virtual.until(lambda: virtual.state(job.id) == "succeeded", within=721)
            assert took >= 720
            assert (await job.aread()).attempt == 1

    virtual.run(scenario())
    assert len(trace.ran) == 1
    renewals = virtual.database.times("renew")
    assert len(renewals) in (71, 72)
    gaps = [later - earlier for earlier, later in pairwise([trace.ran[0], *renewals])]
    assert all(9.999 < gap <= 15 for gap in gaps), "between 1/3 and 1/2 of the lease"
    assert virtual.telemetry.total("lost_leases") == 0


@pytest.mark.requirement("P1")
def test_a_job_whose_lease_has_run_out_before_its_start_is_not_started(
    virtual: VirtualApp,
) -> None:
    """As after a freeze between the claim and its response."""
    trace = HandlerTrace(virtual)
    virtual.database.late_seconds["claim_plain"] = 3.0

    async def scenario() -> None:
        async with virtual.working(lease_timeout_seconds=1):
            job = await trace.task.aenqueue(0.1)
            await virtual.until(lambda: virtual.state(job.id) == "succeeded", within=60)
            assert (await job.aread()).attempt == 2

    virtual.run(scenario())
    assert len(trace.ran) == 1
    assert virtual.telemetry.total("lost_leases") == 1


@pytest.mark.requirement("P3")
def test_a_short_job_after_a_long_idle_time_costs_no_renewal(virtual: VirtualApp) -> None:
    trace = HandlerTrace(virtual)
    virtual.database.has_no_notifications = True

    async def scenario() -> None:
        async with virtual.working():
            await asyncio.sleep(100)
            job = await trace.task.aenqueue(0.1)
            await virtual.until(lambda: virtual.state(job.id) == "succeeded", within=5)

    virtual.run(scenario())
    seen = {name for name, _ in virtual.database.seen}
    assert not {"renew", "mark_running", "stop_requests"} & seen


@pytest.mark.requirement("S0.6")
def test_a_renewal_that_finds_no_row_stops_the_handler_at_once(virtual: VirtualApp) -> None:
    trace = HandlerTrace(virtual)

    async def scenario() -> None:
        async with virtual.working(lease_timeout_seconds=30):
            await trace.task.aenqueue(720)
            await asyncio.sleep(5)
            steal(virtual)
            await virtual.until(lambda: bool(trace.stopped), within=10)
            delay = asyncio.get_running_loop().time() - virtual.database.times("renew")[-1]
            assert delay <= 0.01

    virtual.run(scenario())
    [(_, reason, held)] = trace.stopped
    assert (reason, held) == (StopReason.LEASE_LOST, False)
    assert virtual.telemetry.total("lost_leases") == 1
    assert not virtual.database.times("transition") + virtual.database.times("succeed"), (
        "nothing is written"
    )


@pytest.mark.requirement("S0.6", "S3.8")
def test_a_worker_that_cannot_renew_gives_up_before_its_lease_can_have_ended(
    virtual: VirtualApp,
) -> None:
    trace = HandlerTrace(virtual)

    async def scenario() -> None:
        async with virtual.working(lease_timeout_seconds=30):
            await trace.task.aenqueue(720)
            await asyncio.sleep(1)
            virtual.database.refused |= {"renew"}
            await virtual.until(lambda: bool(trace.stopped), within=30)
            virtual.database.refused.clear()

    virtual.run(scenario())
    [(ran, reason, _)] = trace.stopped[:1]
    assert reason is StopReason.LEASE_LOST
    assert 28 <= ran < 30
    assert virtual.telemetry.total("store_errors", "renewer") > 1


@pytest.mark.requirement("S0.7", "S0.9", "S1.5", "S3.3")
def test_the_job_of_a_crashed_worker_is_recovered_within_its_lease_and_two_seconds(
    virtual: VirtualApp,
) -> None:
    trace = HandlerTrace(virtual)

    async def scenario() -> None:
        asyncio.create_task(virtual.worker("w1", lease_timeout_seconds=30).run())  # noqa: RUF006
        job = await trace.task.using(max_attempts=2).aenqueue(60)
        await virtual.until(lambda: bool(trace.ran), within=1)
        await asyncio.sleep(5)
        await crash()
        async with virtual.working("w2", lease_timeout_seconds=30):
            await virtual.until(lambda: virtual.state(job.id) == "queued", within=32 - 5)
            await virtual.until(lambda: virtual.state(job.id) == "succeeded", within=62)
        [lost] = virtual.events(job.id)
        assert (lost.kind, lost.reason, lost.attempt) == (
            EventKind.LEASE_LOST,
            "its worker was lost",
            1,
        )

    virtual.run(scenario())
    assert virtual.telemetry.total("recovered") == 1
    assert len(trace.ran) == 2


@pytest.mark.requirement("S3.4", "S0.12")
def test_an_outcome_after_the_lease_was_lost_is_refused(virtual: VirtualApp) -> None:
    trace = HandlerTrace(virtual)

    async def scenario() -> None:
        async with virtual.working(lease_timeout_seconds=30):
            job = await trace.task.aenqueue(5)
            await asyncio.sleep(4.9)
            steal(virtual)
            await asyncio.sleep(1)
            assert virtual.state(job.id) == "running"

    virtual.run(scenario())
    assert virtual.telemetry.total("stale_writes") == 1


@pytest.mark.requirement("S3.5", "S2.6")
def test_a_timeout_ends_a_job_in_time_and_counts_a_failed_attempt(virtual: VirtualApp) -> None:
    @virtual.app.task(
        name="slower", timeout=45, retry=Retry(max_attempts=2, base_seconds=60, jitter=0)
    )
    async def slower() -> None:
        await asyncio.sleep(720)

    async def scenario() -> None:
        async with virtual.working(lease_timeout_seconds=30):
            job = await slower.aenqueue()
            await virtual.until(lambda: virtual.state(job.id) == "failed", within=151)
            events = virtual.events(job.id)
            assert [event.kind for event in events] == [EventKind.RETRIED, EventKind.FAILED]
            ran = [event.at - (event.leased_at or event.at) for event in events]
            assert all(timedelta(seconds=45) <= each < timedelta(seconds=46) for each in ran)

    virtual.run(scenario())
    assert virtual.telemetry.total("timeouts") == 2


@pytest.mark.requirement("S2.3", "P3")
def test_a_renewer_that_sleeps_without_leases_is_woken_by_the_first_job(
    virtual: VirtualApp,
) -> None:
    """Its next heartbeat is due in ten seconds, too late for a lease of six."""
    trace = HandlerTrace(virtual)
    virtual.database.has_no_notifications = True  # or every notification would wake it too

    async def one() -> None:
        await asyncio.sleep(60.7)
        job = await trace.task.aenqueue(30)
        await virtual.until(lambda: virtual.state(job.id) == "running", within=0.9)
        await virtual.until(lambda: virtual.state(job.id) == "succeeded", within=31)

    async def scenario() -> None:
        async with virtual.working(lease_timeout_seconds=6):
            for _ in range(5):
                await one()

    virtual.run(scenario())
    assert len(trace.ran) == 5


class Late(HeldLeases):
    """Runs `then` after the renewer has read the leases and before it sleeps."""

    then: Callable[[], None] | None = None

    def all(self) -> list[HeldLease]:
        seen = super().all()
        falls_asleep = sys._getframe(1).f_code is LeaseRenewer._wait.__code__
        if falls_asleep and self.then is not None:
            then, self.then = self.then, None
            then()
        return seen


@pytest.mark.requirement("S0.5", "P3")
def test_a_lease_taken_before_the_renewer_sleeps_wakes_it(
    virtual: VirtualApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freehold.worker.worker.HeldLeases", Late)
    trace = HandlerTrace(virtual)
    virtual.database.has_no_notifications = True

    async def scenario() -> None:
        worker = virtual.worker(lease_timeout_seconds=6, queues=("other",))
        leases = worker.leases
        assert isinstance(leases, Late)
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(30.3)  # it has just sent a heartbeat
        job = await trace.task.aenqueue(30)
        loop, store = asyncio.get_running_loop(), virtual.app._client.awaited
        sent = loop.time()
        request = ClaimRequest(owner="w1", lease_seconds=6, demands=(QueueDemand("default", 1),))
        attempts = await store.claim(request)
        leases.then = lambda: worker._executor.hold(attempts, sent + 6, ())
        worker._renewer.wake()
        await virtual.until(lambda: virtual.state(job.id) == "running", within=0.6)
        await virtual.until(lambda: virtual.state(job.id) == "succeeded", within=31)
        worker.drain()
        await running

    virtual.run(scenario())
    assert len(trace.ran) == 1
