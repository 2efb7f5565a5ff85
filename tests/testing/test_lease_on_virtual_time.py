"""Leases of a real worker, hour by hour in no time: kept, given up, lost, recovered."""

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
from tests.testing.rig import Rig, crash

STEAL = "update job set lease_owner = 'thief', lease_token = lease_token + 1"


def steal(rig: Rig) -> None:
    """Somebody else owns every leased job, behind the worker's back."""
    with rig.database._engine.transaction() as connection:
        connection.execute(STEAL)


class Story:
    """What a handler saw of its own end."""

    def __init__(self, rig: Rig) -> None:
        self.ran: list[float] = []
        self.stopped: list[tuple[float, StopReason | None, bool]] = []

        @rig.app.task(name="long")
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
def test_a_healthy_job_of_twelve_minutes_lives_on_a_lease_of_thirty_seconds(rig: Rig) -> None:
    story = Story(rig)

    async def scenario() -> None:
        async with rig.working(lease_seconds=30):
            job = await story.task.aenqueue(720)
            took = await rig.until(lambda: rig.state(job.id) == "succeeded", within=721)
            assert took >= 720
            assert (await job.aread()).attempt == 1

    rig.play(scenario())
    assert len(story.ran) == 1
    renewals = rig.database.times("renew")
    assert len(renewals) in (71, 72)
    gaps = [later - earlier for earlier, later in pairwise([story.ran[0], *renewals])]
    assert all(9.999 < gap <= 15 for gap in gaps), "between 1/3 and 1/2 of the lease"
    assert rig.telemetry.total("lost_leases") == 0


@pytest.mark.requirement("P3")
def test_a_short_job_after_a_long_idle_time_costs_no_renewal(rig: Rig) -> None:
    story = Story(rig)
    rig.database.is_deaf = True

    async def scenario() -> None:
        async with rig.working():
            await asyncio.sleep(100)
            job = await story.task.aenqueue(0.1)
            await rig.until(lambda: rig.state(job.id) == "succeeded", within=5)

    rig.play(scenario())
    assert not {"renew", "start", "requests"} & {name for name, _ in rig.database.seen}


@pytest.mark.requirement("S0.6")
def test_a_renewal_that_hits_no_row_stops_the_handler_at_once(rig: Rig) -> None:
    story = Story(rig)

    async def scenario() -> None:
        async with rig.working(lease_seconds=30):
            await story.task.aenqueue(720)
            await asyncio.sleep(5)
            steal(rig)
            await rig.until(lambda: bool(story.stopped), within=10)
            told = asyncio.get_running_loop().time() - rig.database.times("renew")[-1]
            assert told <= 0.01

    rig.play(scenario())
    [(_, reason, held)] = story.stopped
    assert (reason, held) == (StopReason.LEASE_LOST, False)
    assert rig.telemetry.total("lost_leases") == 1
    assert not rig.database.times("settle") + rig.database.times("succeed"), "nothing is written"


@pytest.mark.requirement("S0.6", "S3.8")
def test_a_worker_that_cannot_renew_gives_up_before_its_lease_can_have_ended(rig: Rig) -> None:
    story = Story(rig)

    async def scenario() -> None:
        async with rig.working(lease_seconds=30):
            await story.task.aenqueue(720)
            await asyncio.sleep(1)
            rig.database.refused |= {"renew"}
            await rig.until(lambda: bool(story.stopped), within=30)
            rig.database.refused.clear()

    rig.play(scenario())
    [(ran, reason, _)] = story.stopped[:1]
    assert reason is StopReason.LEASE_LOST
    assert 28 <= ran < 30
    assert rig.telemetry.total("store_errors", "keeper") > 1


@pytest.mark.requirement("S0.7", "S0.9", "S1.5", "S3.3")
def test_the_job_of_a_crashed_worker_is_taken_back_within_its_lease_and_two_seconds(
    rig: Rig,
) -> None:
    story = Story(rig)

    async def scenario() -> None:
        asyncio.create_task(rig.worker("w1", lease_seconds=30).run())  # noqa: RUF006
        job = await story.task.using(max_attempts=2).aenqueue(60)
        await rig.until(lambda: bool(story.ran), within=1)
        await asyncio.sleep(5)
        await crash()
        async with rig.working("w2", lease_seconds=30):
            await rig.until(lambda: rig.state(job.id) == "queued", within=32 - 5)
            await rig.until(lambda: rig.state(job.id) == "succeeded", within=62)
        [lost] = rig.events(job.id)
        assert (lost.kind, lost.reason, lost.attempt) == (
            EventKind.LEASE_LOST,
            "its worker was lost",
            1,
        )

    rig.play(scenario())
    assert rig.telemetry.total("recovered") == 1
    assert len(story.ran) == 2


@pytest.mark.requirement("S3.4", "S0.12")
def test_an_end_that_comes_after_the_lease_was_taken_is_refused(rig: Rig) -> None:
    story = Story(rig)

    async def scenario() -> None:
        async with rig.working(lease_seconds=30):
            job = await story.task.aenqueue(5)
            await asyncio.sleep(4.9)
            steal(rig)
            await asyncio.sleep(1)
            assert rig.state(job.id) == "running"

    rig.play(scenario())
    assert rig.telemetry.total("stale_writes") == 1


@pytest.mark.requirement("S3.5", "S2.6")
def test_a_timeout_ends_a_job_in_time_and_counts_a_failed_attempt(rig: Rig) -> None:
    @rig.app.task(name="slower", timeout=45, retry=Retry(max_attempts=2, base_seconds=60, jitter=0))
    async def slower() -> None:
        await asyncio.sleep(720)

    async def scenario() -> None:
        async with rig.working(lease_seconds=30):
            job = await slower.aenqueue()
            await rig.until(lambda: rig.state(job.id) == "failed", within=151)
            events = rig.events(job.id)
            assert [event.kind for event in events] == [EventKind.RETRIED, EventKind.FAILED]
            ran = [event.at - (event.leased_at or event.at) for event in events]
            assert all(timedelta(seconds=45) <= each < timedelta(seconds=46) for each in ran)

    rig.play(scenario())
    assert rig.telemetry.total("timeouts") == 2


@pytest.mark.requirement("S2.3", "P3")
def test_a_keeper_that_sleeps_with_empty_hands_is_woken_by_the_first_job(rig: Rig) -> None:
    """It says that its worker lives every ten seconds: far too late for a lease of six."""
    story = Story(rig)
    rig.database.is_deaf = True  # or every hint would wake it too

    async def one() -> None:
        await asyncio.sleep(60.7)
        job = await story.task.aenqueue(30)
        await rig.until(lambda: rig.state(job.id) == "running", within=0.9)
        await rig.until(lambda: rig.state(job.id) == "succeeded", within=31)

    async def scenario() -> None:
        async with rig.working(lease_seconds=6):
            for _ in range(5):
                await one()

    rig.play(scenario())
    assert len(story.ran) == 5


class Late(HeldLeases):
    """Something is taken when the keeper has just looked, and is about to sleep."""

    then: Callable[[], None] | None = None

    def all(self) -> list[HeldLease]:
        seen = super().all()
        falls_asleep = sys._getframe(1).f_code is LeaseRenewer._wait.__code__
        if falls_asleep and self.then is not None:
            then, self.then = self.then, None
            then()
        return seen


@pytest.mark.requirement("S0.5", "P3")
def test_what_is_taken_while_the_keeper_falls_asleep_wakes_it(rig: Rig) -> None:
    story = Story(rig)
    rig.database.is_deaf = True

    async def scenario() -> None:
        worker = rig.worker(lease_seconds=6, queues=("other",))
        worker.hand = hand = Late()
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(30.3)  # it has just said that it lives
        job = await story.task.aenqueue(30)
        loop, store = asyncio.get_running_loop(), rig.app.client.awaited
        sent = loop.time()
        ask = ClaimRequest(owner="w1", lease_seconds=6, wants=(QueueDemand("default", 1),))
        attempts = await store.claim(ask)
        hand.then = lambda: worker._take(attempts, sent + 6, ())
        worker._keeper.poke()
        await rig.until(lambda: rig.state(job.id) == "running", within=0.6)
        await rig.until(lambda: rig.state(job.id) == "succeeded", within=31)
        worker.drain()
        await running

    rig.play(scenario())
    assert len(story.ran) == 1
