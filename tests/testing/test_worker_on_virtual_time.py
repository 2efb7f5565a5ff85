"""A real worker over hours of virtual time: idle, scheduled jobs, stop requests, drain."""

from __future__ import annotations

import asyncio

import pytest

from freehold import Retry
from freehold.exit_codes import EXIT_DONE
from freehold.model.history import EventKind
from tests.testing.virtual_app import VirtualApp


@pytest.mark.requirement("S0.15")
@pytest.mark.parametrize(("has_no_notifications", "wait_seconds"), [(False, 10.0), (True, 1.0)])
@pytest.mark.parametrize("queue", ["default", "*"])
def test_an_idle_hour_costs_a_bounded_number_of_claims(
    virtual: VirtualApp, has_no_notifications: bool, wait_seconds: float, queue: str
) -> None:
    """With notifications a claim every ten seconds, without them one per polling interval. A worker
    of all queues reads the list of queues instead."""
    virtual.database.has_no_notifications = has_no_notifications

    async def scenario() -> None:
        async with virtual.working(poll_interval_ms=1000.0, queues=(queue,)):
            await asyncio.sleep(3600)

    virtual.run(scenario())
    reads = len(virtual.database.times("ready_queues"))
    assert 0 <= virtual.telemetry.total("claims") + reads - 3600 / wait_seconds < 20
    assert "renew" not in {name for name, _ in virtual.database.seen}


@pytest.mark.requirement("S0.15")
def test_a_full_worker_does_not_claim_more(virtual: VirtualApp) -> None:
    @virtual.app.task(name="long")
    async def long() -> None:
        await asyncio.sleep(3600)

    async def scenario() -> None:
        async with virtual.working(concurrency=1, shutdown_grace_seconds=0):
            await virtual.app.aenqueue_many([long.prepare() for _ in range(3)])
            await asyncio.sleep(3000)

    virtual.run(scenario())
    assert virtual.telemetry.total("claims") < 30


@pytest.mark.requirement("S1.1")
@pytest.mark.parametrize("delay", [0.02, 0.3, 1.0, 7.7, 600.0])
def test_a_scheduled_job_starts_at_its_millisecond(virtual: VirtualApp, delay: float) -> None:
    started: list[float] = []

    @virtual.app.task(name="note")
    async def note() -> None:
        started.append(asyncio.get_running_loop().time())

    async def scenario() -> float:
        async with virtual.working():
            await asyncio.sleep(33.3)
            await note.using(delay=delay).aenqueue()
            due = asyncio.get_running_loop().time() + delay
            await virtual.until(lambda: bool(started), within=delay + 2)
            return started[0] - due

    assert -0.000001 < virtual.run(scenario()) < 0.002


@pytest.mark.parametrize("start_by", [7.7, 600.0])
def test_a_late_job_is_canceled_at_its_millisecond(virtual: VirtualApp, start_by: float) -> None:
    """In a paused queue. The poll of this test has a thousandth of the time as its step."""

    @virtual.app.task(name="note", queue="closed")
    async def note() -> None: ...

    async def scenario() -> float:
        virtual.app.operator.pause_queue("closed", by="ann")
        async with virtual.working():
            job = await note.using(start_by=start_by).aenqueue()
            due = asyncio.get_running_loop().time() + start_by
            await virtual.until(lambda: job.read().state == "canceled", within=start_by + 2)
            return asyncio.get_running_loop().time() - due

    assert -0.000001 < virtual.run(scenario()) < start_by / 900
    assert virtual.telemetry.total("late") == 1


@pytest.mark.requirement("S2.7")
@pytest.mark.parametrize("has_no_notifications", [False, True])
def test_a_retry_starts_at_its_millisecond(virtual: VirtualApp, has_no_notifications: bool) -> None:
    virtual.database.has_no_notifications = has_no_notifications
    started: list[float] = []

    @virtual.app.task(name="flaky", retry=Retry(max_attempts=4, base_seconds=0.2, jitter=0))
    async def flaky() -> None:
        started.append(asyncio.get_running_loop().time())
        raise ValueError("again")

    async def scenario() -> None:
        async with virtual.working():
            await flaky.aenqueue()
            await virtual.until(lambda: len(started) == 4, within=5)

    virtual.run(scenario())
    waits = [started[n + 1] - started[n] for n in range(3)]
    assert waits == pytest.approx([0.2, 0.4, 0.8], abs=0.01)


@pytest.mark.requirement("S4.5", "S4.6")
@pytest.mark.parametrize("has_no_notifications", [False, True])
def test_a_cancel_arrives_within_the_poll_even_without_a_notification(
    virtual: VirtualApp, has_no_notifications: bool
) -> None:
    virtual.database.has_no_notifications = has_no_notifications
    stopped: list[float] = []

    @virtual.app.task(name="long")
    async def long() -> None:
        try:
            await asyncio.sleep(720)
        except asyncio.CancelledError:
            stopped.append(asyncio.get_running_loop().time())
            raise

    async def scenario() -> float:
        async with virtual.working(request_poll_seconds=2):
            job = await long.aenqueue()
            await asyncio.sleep(60.1)
            requested_at = asyncio.get_running_loop().time()
            assert (await job.acancel("enough")).status == "requested"
            await virtual.until(lambda: virtual.state(job.id) == "canceled", within=2.01)
            return stopped[0] - requested_at

    assert virtual.run(scenario()) <= (2.0 if has_no_notifications else 0.01)


@pytest.mark.requirement("S2.5")
@pytest.mark.parametrize("seconds", [0.2, 0.3, 7.0, 700.0])
def test_a_report_has_the_time_that_the_job_ran(virtual: VirtualApp, seconds: float) -> None:
    """Whether or not the store showed it as running in between."""

    @virtual.app.task(name="work")
    async def work() -> None:
        await asyncio.sleep(seconds)

    async def scenario() -> tuple[float | None, float | None]:
        async with virtual.working():
            job = await work.aenqueue()
            await virtual.until(lambda: virtual.state(job.id) == "succeeded", within=seconds + 1)
        report = (await job.aread()).report
        assert report is not None
        return report.ran_seconds, report.waited_seconds

    ran, waited = virtual.run(scenario())
    assert ran == pytest.approx(seconds, abs=0.01)
    assert waited == pytest.approx(0, abs=0.01)


@pytest.mark.requirement("S4.11", "P7")
def test_a_drain_waits_for_its_grace_period_then_stops_and_returns_jobs(
    virtual: VirtualApp,
) -> None:
    @virtual.app.task(name="work")
    async def work(seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def scenario() -> tuple[int, float, list[str]]:
        loop = asyncio.get_running_loop()
        worker = virtual.worker(concurrency=3, shutdown_grace_seconds=300)
        running = asyncio.create_task(worker.run())
        jobs = await virtual.app.aenqueue_many(
            [
                work.prepare(200),
                work.prepare(10_000),
                work.using(target="lane").prepare(10_000),
                work.prepare(1),
            ]
        )
        await asyncio.sleep(0.5)
        began = loop.time()
        worker.drain()
        code = await running
        states = [virtual.state(job.id) for job in jobs]
        assert [(await job.aread()).attempt for job in jobs] == [1, 0, 0, 0]
        assert [event.kind for event in virtual.events(jobs[1].id)] == [EventKind.DRAINED]
        return code, loop.time() - began, states

    code, took, states = virtual.run(scenario())
    assert code == EXIT_DONE
    assert 300 <= took < 302
    assert states == ["succeeded", "queued", "paused", "queued"]


@pytest.mark.requirement("S4.11")
def test_a_second_signal_stops_jobs_at_once(virtual: VirtualApp) -> None:
    @virtual.app.task(name="work")
    async def work() -> None:
        await asyncio.sleep(200)

    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        worker = virtual.worker(shutdown_grace_seconds=300)
        running = asyncio.create_task(worker.run())
        await work.aenqueue()
        await asyncio.sleep(5)
        began = loop.time()
        worker.drain()
        worker.stop_now()
        await running
        return loop.time() - began

    assert virtual.run(scenario()) < 0.1


@pytest.mark.requirement("S4.11", "P10")
def test_outcomes_that_cannot_be_written_are_logged_when_the_worker_exits(
    virtual: VirtualApp, caplog: pytest.LogCaptureFixture
) -> None:
    """It does not try for longer than its leases last: then other workers recover the jobs."""
    ended: list[str] = []

    @virtual.app.task(name="work")
    async def work() -> None:
        ended.append("well")

    async def scenario() -> tuple[int, float]:
        loop = asyncio.get_running_loop()
        worker = virtual.worker(lease_timeout_seconds=30)
        running = asyncio.create_task(worker.run())
        virtual.database.refused = {"succeed"}
        await virtual.app.aenqueue_many([work.prepare() for _ in range(2)])
        await virtual.until(lambda: len(ended) == 2, within=1)
        began = loop.time()
        worker.drain()
        return await running, loop.time() - began

    code, took = virtual.run(scenario())
    assert code == EXIT_DONE
    assert 30 <= took < 31
    assert "2 outcomes could not be written" in caplog.text


def test_a_worker_logs_the_queues_of_its_tasks_that_it_does_not_serve(
    virtual: VirtualApp, caplog: pytest.LogCaptureFixture
) -> None:
    """So that a forgotten --queue can be noticed."""
    caplog.set_level("INFO", "freehold")

    @virtual.app.task(name="mail", queue="mail")
    async def mail() -> None: ...

    virtual.work_until_idle(queues=("default",))
    assert "does not serve queues of its tasks: mail" in caplog.text
    caplog.clear()
    virtual.work_until_idle("w2", queues=("mail", "default"))
    assert "to others" not in caplog.text


def test_a_worker_until_idle_runs_jobs_that_became_due_before_its_start(
    virtual: VirtualApp,
) -> None:
    @virtual.app.task(name="work")
    async def work() -> None: ...

    jobs = [work.using(delay=3600).enqueue() for _ in range(5)]
    virtual.clock.advance(3600)
    virtual.work_until_idle(concurrency=1)
    assert {virtual.state(job.id) for job in jobs} == {"succeeded"}


def test_a_worker_until_idle_does_not_exit_while_the_store_fails(virtual: VirtualApp) -> None:
    @virtual.app.task(name="work")
    async def work() -> None: ...

    async def scenario() -> None:
        virtual.database.refused |= {"claim_plain"}
        running = asyncio.create_task(virtual.worker(until_idle=True).run())
        job = await work.aenqueue()
        await asyncio.sleep(60)
        virtual.database.refused.clear()
        await running
        assert virtual.state(job.id) == "succeeded"

    virtual.run(scenario())


def test_a_job_enqueued_while_others_run_is_claimed_at_once(virtual: VirtualApp) -> None:
    @virtual.app.task(name="child")
    async def child() -> None: ...

    @virtual.app.task(name="parent")
    async def parent() -> float:
        await asyncio.sleep(100)
        job = await child.aenqueue()
        return await virtual.until(lambda: virtual.state(job.id) == "succeeded", within=5)

    async def scenario() -> object:
        async with virtual.working():
            job = await parent.aenqueue()
            await virtual.until(lambda: virtual.state(job.id) == "succeeded", within=110)
            report = (await job.aread()).report
            assert report is not None
            return report.result

    assert virtual.run(scenario()) == pytest.approx(0.0, abs=0.01)


def test_two_workers_from_one_seed_repeat_their_whole_history() -> None:
    def history(seed: int) -> tuple[list[object], list[tuple[str, float]]]:
        virtual = VirtualApp(seed)

        @virtual.app.task(name="mixed", retry=Retry(max_attempts=3))
        async def mixed(number: int) -> int:
            await asyncio.sleep(number * 0.7)
            if number % 3 == 0:
                raise ValueError(number)
            return number

        async def scenario() -> list[object]:
            async with virtual.working("w1", concurrency=2), virtual.working("w2", concurrency=2):
                jobs = [await mixed.using(delay=n % 4).aenqueue(n) for n in range(20)]
                await asyncio.sleep(120)
            return [virtual.app.operator.show(job.id) for job in jobs]

        return virtual.run(scenario()), virtual.database.seen

    assert history(5) == history(5)
    assert history(5)[0] != history(6)[0]


@pytest.mark.requirement("P3")
def test_jobs_claimed_ahead_of_long_jobs_go_to_a_worker_with_a_free_slot(
    virtual: VirtualApp,
) -> None:
    """Many short jobs make a worker claim ahead; then long jobs take all of its slots."""
    ended: list[tuple[str, float]] = []

    @virtual.app.task(name="short")
    async def short(after: str) -> None:
        await asyncio.sleep(0.001)
        ended.append((after, asyncio.get_running_loop().time()))

    @virtual.app.task(name="long")
    async def long() -> None:
        await asyncio.sleep(300)

    async def scenario() -> tuple[float, float]:
        async with virtual.working("w1", concurrency=2):
            await virtual.app.aenqueue_many(
                [short.prepare("before") for _ in range(400)]
                + [long.prepare() for _ in range(2)]
                + [short.prepare("behind") for _ in range(50)]
            )
            await virtual.until(lambda: len(ended) >= 400, within=5)
            blocked = asyncio.get_running_loop().time()
            async with virtual.working("w2", concurrency=2):
                await virtual.until(lambda: len(ended) == 450, within=30)
                return blocked, ended[-1][1]

    blocked, last = virtual.run(scenario())
    assert last - blocked < 3.0
    given_back = virtual.telemetry.total("finished", "give_back")
    assert 0 < given_back <= 50
    assert virtual.telemetry.total("retried") == 0  # a job that did not start has no retry


def test_jobs_waiting_behind_short_jobs_are_not_given_back(virtual: VirtualApp) -> None:
    done = 0

    @virtual.app.task(name="short")
    async def short() -> None:
        nonlocal done
        await asyncio.sleep(0.001)
        done += 1

    async def scenario() -> None:
        async with virtual.working("w1", concurrency=2):
            await virtual.app.aenqueue_many([short.prepare() for _ in range(5000)])
            await virtual.until(lambda: done == 5000, within=30)

    virtual.run(scenario())
    assert virtual.telemetry.total("claims") < 500  # many at a time, for seconds
    assert virtual.telemetry.total("finished", "give_back") == 0
