"""What a real worker does over hours: idle, due, asked to stop, drained."""

from __future__ import annotations

import asyncio

import pytest

from freehold import Retry
from freehold.exit_codes import EXIT_DONE
from freehold.model.history import EventKind
from tests.testing.rig import Rig


@pytest.mark.requirement("S0.15")
@pytest.mark.parametrize(("is_deaf", "wait_seconds"), [(False, 10.0), (True, 1.0)])
def test_an_idle_hour_costs_a_bounded_number_of_claims(
    rig: Rig, is_deaf: bool, wait_seconds: float
) -> None:
    """Where hints arrive, a claim in ten seconds; where none do, one in every poll."""
    rig.database.is_deaf = is_deaf

    async def scenario() -> None:
        async with rig.working(poll_seconds=1.0):
            await asyncio.sleep(3600)

    rig.play(scenario())
    assert 0 <= rig.telemetry.total("claims") - 3600 / wait_seconds < 20
    assert "renew" not in {name for name, _ in rig.database.seen}


@pytest.mark.requirement("S0.15")
def test_a_full_worker_does_not_look_for_more(rig: Rig) -> None:
    @rig.app.task(name="long")
    async def long() -> None:
        await asyncio.sleep(3600)

    async def scenario() -> None:
        async with rig.working(concurrency=1, grace_seconds=0):
            await rig.app.aenqueue_many([long.prepare() for _ in range(3)])
            await asyncio.sleep(3000)

    rig.play(scenario())
    assert rig.telemetry.total("claims") < 30


@pytest.mark.requirement("S1.1")
@pytest.mark.parametrize("delay", [0.02, 0.3, 1.0, 7.7, 600.0])
def test_a_scheduled_job_starts_at_its_millisecond(rig: Rig, delay: float) -> None:
    started: list[float] = []

    @rig.app.task(name="note")
    async def note() -> None:
        started.append(asyncio.get_running_loop().time())

    async def scenario() -> float:
        async with rig.working():
            await asyncio.sleep(33.3)
            await note.using(delay=delay).aenqueue()
            due = asyncio.get_running_loop().time() + delay
            await rig.until(lambda: bool(started), within=delay + 2)
            return started[0] - due

    assert -0.000001 < rig.play(scenario()) < 0.002


@pytest.mark.requirement("S2.7")
@pytest.mark.parametrize("is_deaf", [False, True])
def test_a_retry_starts_at_its_millisecond(rig: Rig, is_deaf: bool) -> None:
    rig.database.is_deaf = is_deaf
    started: list[float] = []

    @rig.app.task(name="flaky", retry=Retry(max_attempts=4, base_seconds=0.2, jitter=0))
    async def flaky() -> None:
        started.append(asyncio.get_running_loop().time())
        raise ValueError("again")

    async def scenario() -> None:
        async with rig.working():
            await flaky.aenqueue()
            await rig.until(lambda: len(started) == 4, within=5)

    rig.play(scenario())
    waits = [started[n + 1] - started[n] for n in range(3)]
    assert waits == pytest.approx([0.2, 0.4, 0.8], abs=0.01)


@pytest.mark.requirement("S4.5", "S4.6")
@pytest.mark.parametrize("is_deaf", [False, True])
def test_a_cancel_arrives_within_the_poll_even_without_a_hint(rig: Rig, is_deaf: bool) -> None:
    rig.database.is_deaf = is_deaf
    stopped: list[float] = []

    @rig.app.task(name="long")
    async def long() -> None:
        try:
            await asyncio.sleep(720)
        except asyncio.CancelledError:
            stopped.append(asyncio.get_running_loop().time())
            raise

    async def scenario() -> float:
        async with rig.working(request_poll_seconds=2):
            job = await long.aenqueue()
            await asyncio.sleep(60.1)
            asked_at = asyncio.get_running_loop().time()
            assert (await job.acancel("enough")).what == "requested"
            await rig.until(lambda: rig.state(job.id) == "canceled", within=2.01)
            return stopped[0] - asked_at

    assert rig.play(scenario()) <= (2.0 if is_deaf else 0.01)


@pytest.mark.requirement("S2.5")
@pytest.mark.parametrize("seconds", [0.2, 0.3, 7.0, 700.0])
def test_a_report_says_how_long_the_job_ran(rig: Rig, seconds: float) -> None:
    """Whether or not it was shown as running in between."""

    @rig.app.task(name="work")
    async def work() -> None:
        await asyncio.sleep(seconds)

    async def scenario() -> tuple[float | None, float | None]:
        async with rig.working():
            job = await work.aenqueue()
            await rig.until(lambda: rig.state(job.id) == "succeeded", within=seconds + 1)
        report = (await job.aread()).report
        assert report is not None
        return report.ran_seconds, report.waited_seconds

    ran, waited = rig.play(scenario())
    assert ran == pytest.approx(seconds, abs=0.01)
    assert waited == pytest.approx(0, abs=0.01)


@pytest.mark.requirement("S4.11", "P7")
def test_a_drain_waits_for_its_grace_then_stops_and_gives_back(rig: Rig) -> None:
    @rig.app.task(name="work")
    async def work(seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def scenario() -> tuple[int, float, list[str]]:
        loop = asyncio.get_running_loop()
        worker = rig.worker(concurrency=3, grace_seconds=300)
        running = asyncio.create_task(worker.run())
        jobs = await rig.app.aenqueue_many(
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
        states = [rig.state(job.id) for job in jobs]
        assert [(await job.aread()).attempt for job in jobs] == [1, 0, 0, 0]
        assert [event.kind for event in rig.events(jobs[1].id)] == [EventKind.DRAINED]
        return code, loop.time() - began, states

    code, took, states = rig.play(scenario())
    assert code == EXIT_DONE
    assert 300 <= took < 302
    assert states == ["succeeded", "queued", "paused", "queued"]


@pytest.mark.requirement("S4.11")
def test_a_hurried_drain_does_not_wait(rig: Rig) -> None:
    @rig.app.task(name="work")
    async def work() -> None:
        await asyncio.sleep(200)

    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        worker = rig.worker(grace_seconds=300)
        running = asyncio.create_task(worker.run())
        await work.aenqueue()
        await asyncio.sleep(5)
        began = loop.time()
        worker.drain()
        worker.hurry()
        await running
        return loop.time() - began

    assert rig.play(scenario()) < 0.1


@pytest.mark.requirement("S4.11", "P10")
def test_ends_that_cannot_be_written_are_told_when_the_worker_goes(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    """It does not try for longer than its leases live: then others take the jobs over anyway."""
    ended: list[str] = []

    @rig.app.task(name="work")
    async def work() -> None:
        ended.append("well")

    async def scenario() -> tuple[int, float]:
        loop = asyncio.get_running_loop()
        worker = rig.worker(lease_seconds=30)
        running = asyncio.create_task(worker.run())
        rig.database.refused = {"succeed"}
        await rig.app.aenqueue_many([work.prepare() for _ in range(2)])
        await rig.until(lambda: len(ended) == 2, within=1)
        began = loop.time()
        worker.drain()
        return await running, loop.time() - began

    code, took = rig.play(scenario())
    assert code == EXIT_DONE
    assert 30 <= took < 31
    assert "2 ends could not be written" in caplog.text


def test_a_worker_says_which_of_its_tasks_jobs_it_leaves_to_others(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever forgot --queue sees why nothing happens."""
    caplog.set_level("INFO", "freehold")

    @rig.app.task(name="mail", queue="mail")
    async def mail() -> None: ...

    rig.play(rig.worker(until_idle=True).run())
    assert "leaves jobs of these queues to others: mail" in caplog.text
    caplog.clear()
    rig.play(rig.worker("w2", queues=("mail", "default"), until_idle=True).run())
    assert "to others" not in caplog.text


def test_a_worker_until_idle_does_not_leave_what_had_fallen_due_before(rig: Rig) -> None:
    @rig.app.task(name="work")
    async def work() -> None: ...

    jobs = [work.using(delay=3600).enqueue() for _ in range(5)]
    rig.clock.advance(3600)
    rig.play(rig.worker(concurrency=1, until_idle=True).run())
    assert {rig.state(job.id) for job in jobs} == {"succeeded"}


def test_a_worker_until_idle_does_not_take_a_failing_store_for_an_empty_one(rig: Rig) -> None:
    @rig.app.task(name="work")
    async def work() -> None: ...

    async def scenario() -> None:
        rig.database.refused |= {"claim_plain"}
        running = asyncio.create_task(rig.worker(until_idle=True).run())
        job = await work.aenqueue()
        await asyncio.sleep(60)
        rig.database.refused.clear()
        await running
        assert rig.state(job.id) == "succeeded"

    rig.play(scenario())


def test_a_job_enqueued_while_others_run_is_heard_at_once(rig: Rig) -> None:
    @rig.app.task(name="child")
    async def child() -> None: ...

    @rig.app.task(name="parent")
    async def parent() -> float:
        await asyncio.sleep(100)
        job = await child.aenqueue()
        return await rig.until(lambda: rig.state(job.id) == "succeeded", within=5)

    async def scenario() -> object:
        async with rig.working():
            job = await parent.aenqueue()
            await rig.until(lambda: rig.state(job.id) == "succeeded", within=110)
            report = (await job.aread()).report
            assert report is not None
            return report.result

    assert rig.play(scenario()) == pytest.approx(0.0, abs=0.01)


def test_two_workers_from_one_seed_repeat_their_whole_history() -> None:
    def history(seed: int) -> tuple[list[object], list[tuple[str, float]]]:
        rig = Rig(seed)

        @rig.app.task(name="odd", retry=Retry(max_attempts=3))
        async def odd(number: int) -> int:
            await asyncio.sleep(number * 0.7)
            if number % 3 == 0:
                raise ValueError(number)
            return number

        async def scenario() -> list[object]:
            async with rig.working("w1", concurrency=2), rig.working("w2", concurrency=2):
                jobs = [await odd.using(delay=n % 4).aenqueue(n) for n in range(20)]
                await asyncio.sleep(120)
            return [rig.app.operate.show(job.id) for job in jobs]

        return rig.play(scenario()), rig.database.seen

    assert history(5) == history(5)
    assert history(5)[0] != history(6)[0]


@pytest.mark.requirement("P3")
def test_what_was_claimed_ahead_of_long_jobs_goes_to_whoever_has_a_slot(rig: Rig) -> None:
    """Many short ones make a worker claim ahead; then long ones take all of its slots."""
    ended: list[tuple[str, float]] = []

    @rig.app.task(name="short")
    async def short(after: str) -> None:
        await asyncio.sleep(0.001)
        ended.append((after, asyncio.get_running_loop().time()))

    @rig.app.task(name="long")
    async def long() -> None:
        await asyncio.sleep(300)

    async def scenario() -> tuple[float, float]:
        async with rig.working("w1", concurrency=2):
            await rig.app.aenqueue_many(
                [short.prepare("before") for _ in range(400)]
                + [long.prepare() for _ in range(2)]
                + [short.prepare("behind") for _ in range(50)]
            )
            await rig.until(lambda: len(ended) >= 400, within=5)
            blocked = asyncio.get_running_loop().time()
            async with rig.working("w2", concurrency=2):
                await rig.until(lambda: len(ended) == 450, within=30)
                return blocked, ended[-1][1]

    blocked, last = rig.play(scenario())
    assert last - blocked < 3.0
    given_back = rig.telemetry.total("finished", "give_back")
    assert 0 < given_back <= 50
    assert rig.telemetry.total("retried") == 0  # what never began is not tried again


def test_what_waits_behind_short_jobs_is_not_given_back(rig: Rig) -> None:
    done = 0

    @rig.app.task(name="short")
    async def short() -> None:
        nonlocal done
        await asyncio.sleep(0.001)
        done += 1

    async def scenario() -> None:
        async with rig.working("w1", concurrency=2):
            await rig.app.aenqueue_many([short.prepare() for _ in range(5000)])
            await rig.until(lambda: done == 5000, within=30)

    rig.play(scenario())
    assert rig.telemetry.total("claims") < 500  # many at a time, for seconds
    assert rig.telemetry.total("finished", "give_back") == 0
