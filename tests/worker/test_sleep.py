"""ctx.sleep: the handler waits for days without a slot, once for its job."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from freehold import Context, Freehold, Retry
from freehold.model.step import STEPS_LIMIT
from freehold.testing import Harness
from tests.testing.virtual_app import VirtualApp, crash
from tests.worker.durable_handlers import error_of
from tests.worker.local_worker import ONCE, LocalWorker, kinds


@pytest.fixture
def app() -> Freehold:
    return Freehold("sqlite://:memory:")


@kinds
@pytest.mark.requirement("N9")
def test_a_sleep_takes_its_time_once_and_counts_no_attempt(app: Freehold, kind: str) -> None:
    runs: list[int] = []

    @app.task(name="async", retry=ONCE)
    async def coroutine(ctx: Context) -> str:
        runs.append(ctx.attempt)
        await ctx.sleep("cooling off", days=3)
        await ctx.sleep("again", timedelta(hours=1))
        return "awake"

    @app.task(name="plain", retry=ONCE)
    def plain(ctx: Context) -> str:
        runs.append(ctx.attempt)
        ctx.sleep("cooling off", days=3)
        ctx.sleep("again", 3600)
        return "awake"

    with Harness(app) as queue:
        job = (coroutine if kind == "coroutine" else plain).enqueue()
        queue.run(seconds=3 * 86400 - 1)
        assert runs == [1]
        assert "sleeps: cooling off" in app.operator.explain(job.id)[0].text
        queue.run(seconds=3600)
        assert runs == [1, 1]
        report = queue.run(seconds=3600)
        assert (report.retried, runs) == (0, [1, 1, 1])
        assert job.result() == "awake"
        assert app.operator.show(job.id).job.attempt == 1


def test_a_short_sleep_is_slept_in_place(app: Freehold) -> None:
    @app.task(name="naps")
    async def naps(ctx: Context) -> None:
        await ctx.sleep("nap", 0.5)

    with Harness(app) as queue:
        job = naps.enqueue()
        assert queue.run().attempts == 1
        assert app.operator.show(job.id).job.state == "succeeded"


@pytest.mark.requirement("N9")
def test_a_job_that_was_woken_early_sleeps_for_the_rest(app: Freehold) -> None:
    @app.task(name="sleeps")
    async def sleeps(ctx: Context) -> None:
        await ctx.sleep("long", hours=2)

    with Harness(app) as queue:
        job = sleeps.enqueue()
        queue.run(seconds=3600)
        app.operator.pause(job.id, by="ann")
        app.operator.resume(job.id, by="ann")
        queue.run()
        due = app.operator.show(job.id).job.run_at - app.operator.now()
        assert timedelta(minutes=59) < due <= timedelta(hours=1)
        queue.run(seconds=3601)
        assert app.operator.show(job.id).job.state == "succeeded"


@pytest.mark.requirement("N9")
def test_a_worker_that_dies_while_it_suspends_costs_no_sleep(virtual: VirtualApp) -> None:
    """The step is written, the suspension is not: the sleep still ends at its time."""

    @virtual.app.task(name="sleeps")
    async def sleeps(ctx: Context) -> None:
        await ctx.sleep("long", 100)

    job = sleeps.enqueue()

    async def scenario() -> float:
        virtual.database.refused = {"transition"}
        worker = virtual.worker("w1")
        running = asyncio.create_task(worker.run())
        await virtual.until(lambda: len(virtual.database.times("transition")) > 0, 20.0)
        await crash()
        assert running.done()
        virtual.database.refused = set()
        async with virtual.working("w2"):
            await virtual.until(lambda: virtual.state(job.id) == "succeeded", 200.0)
        return virtual.clock.micros / 1e6

    virtual.run(scenario())
    kinds = [str(event.kind) for event in virtual.events(job.id)]
    assert kinds == ["lease_lost", "suspended"]
    (first,) = virtual.app._client.store.read_steps(job.id)
    report = virtual.app._client.store.read([job.id])[job.id].report
    assert report is not None
    assert 100.0 <= (report.finished_at - first.at).total_seconds() <= 102.0


@pytest.mark.requirement("N9")
def test_a_drain_leaves_a_suspended_lane_job_in_the_queue(virtual: VirtualApp) -> None:
    @virtual.app.task(name="sleeps")
    async def sleeps(ctx: Context) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await ctx.sleep("long", 1000)

    job = sleeps.using(target="lane").enqueue()

    async def scenario() -> None:
        async with virtual.working(shutdown_grace_seconds=0.0) as worker:
            await virtual.until(lambda: len(worker.attempts) > 0, 10.0)

    virtual.run(scenario())
    assert [str(event.kind) for event in virtual.events(job.id)] == ["suspended"]
    assert virtual.state(job.id) == "queued"


@pytest.mark.requirement("N9")
def test_a_handler_is_suspended_as_often_as_it_may_have_steps(app: Freehold) -> None:
    @app.task(name="often", retry=ONCE)
    async def often(ctx: Context) -> int:
        for number in range(STEPS_LIMIT):
            await ctx.sleep(f"day {number}", days=1)
        return ctx.attempt

    with Harness(app) as queue:
        job = often.enqueue()
        report = queue.run(seconds=(STEPS_LIMIT + 1) * 86400)
        assert report.attempts == STEPS_LIMIT + 1
        assert job.result() == 1


@kinds
def test_a_handler_that_catches_everything_is_suspended_all_the_same(
    local_worker: LocalWorker, kind: str
) -> None:
    async def coroutine(ctx: Context) -> str:
        try:
            await ctx.sleep("long", days=1)
        except BaseException:
            return "caught"
        return "not reached"

    def plain(ctx: Context) -> str:
        try:
            ctx.sleep("long", days=1)
        except BaseException:
            return "caught"
        return "not reached"

    job_id = local_worker.add(coroutine if kind == "coroutine" else plain)
    local_worker.run()
    assert local_worker.job(job_id).waits_for == "sleep/long"


REFUSED: dict[str, tuple[Any, str]] = {
    "a negative time": (lambda ctx: ctx.sleep("a", -1), "at most ten years"),
    "no time": (lambda ctx: ctx.sleep("a", "soon"), "at most ten years"),
    "a century": (lambda ctx: ctx.sleep("a", days=36525), "at most ten years"),
    "a name twice": (lambda ctx: (ctx.sleep("a", 0), ctx.sleep("a", 0)), "two steps 'a'"),
    "the name of a step": (lambda ctx: (ctx.step("a", int), ctx.sleep("a", 0)), "two steps 'a'"),
    "inside of a step": (
        lambda ctx: ctx.step("outer", lambda: ctx.sleep("a", days=1)),
        "while step 'outer' runs",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_bad_sleeps_are_refused(local_worker: LocalWorker, what: str) -> None:
    body, message = REFUSED[what]

    def plain(ctx: Context) -> None:
        body(ctx)

    job_id = local_worker.add(plain, retry=ONCE)
    local_worker.run()
    assert message in error_of(local_worker, job_id)


def test_a_step_that_becomes_a_sleep_is_refused(local_worker: LocalWorker) -> None:
    def plain(ctx: Context) -> None:
        if ctx.attempt == 1:
            ctx.step("a", int)
            raise ValueError
        ctx.sleep("a", 5)

    job_id = local_worker.add(plain, retry=Retry(max_attempts=2, base_seconds=0))
    local_worker.run()
    assert "is stored as a result, and is now a sleep" in error_of(local_worker, job_id)
