"""The harness as users use it in their tests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

import pytest

from freehold import (
    EndedAttempt,
    Extension,
    Fail,
    Freehold,
    JobCanceled,
    JobFailed,
    JobHandle,
    ResultTimeout,
    Retry,
    Snooze,
    State,
)
from freehold.testing import Harness, StillBusy
from freehold.worker.execution.context import Context

app = Freehold("sqlite:///never-opened.db")
START = datetime(2030, 1, 1, tzinfo=UTC)


class Broken(Exception):
    pass


@app.task(name="send", queue="mail")
async def send(to: str, subject: str = "none") -> str:
    return f"sent to {to}"


@app.task(name="flaky", retry=Retry(max_attempts=4, base_seconds=3600))
async def flaky(good_at: int, *, ctx: Context | None = None) -> int:
    assert ctx is not None
    if ctx.attempt < good_at:
        raise Broken(f"attempt {ctx.attempt}")
    return ctx.attempt


@app.task(name="doomed", retry=Retry(max_attempts=1))
def doomed() -> None:
    raise Broken("for good")


@app.task(name="waits", retry=Retry(max_attempts=1))
def waits() -> str:
    return send.call("ann")


@app.task(name="asleep")
async def asleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


@app.task(name="endless")
async def endless() -> None:
    await endless.aenqueue()


@app.task(name="polls")
async def polls() -> None:
    raise Snooze(300)


@pytest.fixture
def queue() -> Iterator[Harness]:
    with Harness(app, start=START) as harness:
        yield harness


def test_run_runs_due_jobs_and_reports_them(queue: Harness) -> None:
    job = send.enqueue("a@example.org", subject="hi")
    assert queue.job(job.id).state is State.QUEUED
    report = queue.run()
    assert (report.succeeded, report.attempts, report.errors) == (1, 1, ())
    finished = queue.job(job.id).report
    assert finished is not None
    assert finished.result == "sent to a@example.org"
    assert queue.run().attempts == 0


def test_the_apps_own_store_is_not_used_and_is_restored(queue: Harness) -> None:
    elsewhere = Freehold("sqlite://:memory:")
    elsewhere.task(send.function, name="send")  # type: ignore[call-overload]
    before = elsewhere._client
    with Harness(elsewhere) as inner:
        elsewhere.tasks.get("send").enqueue("x")
        assert inner.run().succeeded == 1
    assert elsewhere._client is before
    assert elsewhere.operator.counts().ready == 0
    elsewhere.close()


def test_a_job_due_in_three_days_runs_after_advance(queue: Harness) -> None:
    job = send.using(delay=timedelta(days=3)).enqueue("a")
    assert queue.run().attempts == 0
    queue.advance(timedelta(days=3) - timedelta(seconds=1))
    assert queue.run().attempts == 0
    queue.advance(1)
    assert queue.run().succeeded == 1
    report = queue.job(job.id).report
    assert report is not None
    assert timedelta(0) <= report.finished_at - START - timedelta(days=3) < timedelta(seconds=1)


def test_a_job_that_has_not_started_by_its_time_is_canceled(queue: Harness) -> None:
    job = send.using(start_by=timedelta(hours=1)).enqueue("a")
    queue.advance(3600)
    assert queue.run().attempts == 0
    assert queue.job(job.id).state is State.CANCELED
    with pytest.raises(JobCanceled, match="had not started by 2030-01-01 01:00:00 UTC"):
        job.result()


def test_run_scheduled_advances_to_scheduled_jobs(queue: Harness) -> None:
    send.using(run_at=START + timedelta(days=30)).enqueue("a")
    assert queue.run(scheduled=True).succeeded == 1
    assert timedelta(0) <= queue.now - START - timedelta(days=30) < timedelta(seconds=1)


def test_run_seconds_runs_the_jobs_due_within_that_time(queue: Harness) -> None:
    polls.enqueue()
    send.using(delay=4000).enqueue("later")
    report = queue.run(seconds=3600)
    assert report.attempts in (12, 13)  # every 5 minutes and a little more
    assert timedelta(0) <= queue.now - START - timedelta(hours=1) < timedelta(seconds=1)
    assert [str(job.state) for job in queue.jobs(send)] == ["queued"]


def test_retries_run_through_a_backoff_of_hours(queue: Harness) -> None:
    job = flaky.enqueue(4)
    report = queue.run()
    assert (report.succeeded, report.attempts, report.retried) == (1, 4, 3)
    assert [str(each.error) for each in report.errors] == ["attempt 1", "attempt 2", "attempt 3"]
    assert queue.job(job.id).attempt == 4
    assert timedelta(hours=2) < queue.now - START < timedelta(hours=4)


def test_a_snooze_is_not_followed(queue: Harness) -> None:
    polls.enqueue()
    report = queue.run()
    assert (report.attempts, report.queued) == (1, 1)


def test_errors_are_collected_and_shown(queue: Harness) -> None:
    job = doomed.enqueue()
    report = queue.run()
    assert report.failed == 1
    assert (report.errors[0].job_id, report.errors[0].attempt) == (job.id, 1)
    assert "1 failed" in str(report)
    assert "Broken('for good')" in str(report)


def test_raise_errors_raises_the_first_and_tries_no_more(queue: Harness) -> None:
    job = flaky.enqueue(4)
    with pytest.raises(Broken, match="attempt 1"):
        queue.run(raise_errors=True)
    assert queue.job(job.id).attempt == 1


def test_outcome_exceptions_of_a_handler_are_not_errors(queue: Harness) -> None:
    @app.task(name="gives_up")
    def gives_up() -> None:
        raise Fail("no budget left")

    gives_up.enqueue()
    report = queue.run(raise_errors=True)
    assert (report.failed, report.errors) == (1, ())


def test_a_keyboard_interrupt_in_a_handler_is_raised_in_the_test(queue: Harness) -> None:
    @app.task(name="interrupted")
    def interrupted() -> None:
        raise KeyboardInterrupt

    interrupted.enqueue()
    with pytest.raises(KeyboardInterrupt):
        queue.run()


ran_in: list[int] = []


@app.task(name="isolated", isolation="process")
def isolated() -> None:
    ran_in.append(os.getpid())


def test_an_isolated_task_runs_in_the_process_of_the_test(queue: Harness) -> None:
    ran_in.clear()
    isolated.enqueue()
    assert queue.run().succeeded == 1
    assert ran_in == [os.getpid()]


def test_a_connection_of_the_caller_is_accepted_and_ignored(queue: Harness) -> None:
    send.using(connection=object()).enqueue("a")
    assert queue.run().succeeded == 1


def test_arun_works_inside_a_running_loop(queue: Harness) -> None:
    async def scenario() -> None:
        job = await asleep.aenqueue(600)
        report = await queue.arun()
        assert report.succeeded == 1
        assert (await job.aread()).state is State.SUCCEEDED
        assert asyncio.current_task() is not None

    asyncio.run(scenario())


def test_a_handler_that_never_ends_is_named(queue: Harness) -> None:
    asleep.enqueue(10**6)
    with pytest.raises(StillBusy, match=r"job 1 of asleep.*timeout"):
        queue.run(limit_seconds=60)


def test_a_job_that_enqueues_itself_endlessly_is_named(
    queue: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freehold.testing.attempts.ATTEMPTS_LIMIT", 20)
    endless.enqueue()
    with pytest.raises(StillBusy, match=r"called 20 times.*of endless"):
        queue.run()


def test_the_same_seed_gives_the_same_history() -> None:
    def history(seed: int) -> list[object]:
        with Harness(app, seed=seed, start=START) as queue:
            jobs: list[JobHandle] = [flaky.enqueue(n) for n in (1, 2, 3, 9)]
            jobs += [send.using(delay=n * 600).enqueue("x") for n in range(3)]
            queue.run(scheduled=True)
            return [app.operator.show(job.id) for job in jobs]

    assert history(1) == history(1)
    assert history(1) != history(2)


def test_a_result_that_is_asked_for_runs_its_job(queue: Harness) -> None:
    assert send.call("ann") == "sent to ann"
    assert flaky.enqueue(3).result() == 3
    with pytest.raises(JobFailed, match="for good"):
        doomed.call()

    async def main() -> str:
        return await send.acall("bob")

    assert asyncio.run(main()) == "sent to bob"


def test_time_advances_only_by_the_timeout_of_a_result(queue: Harness) -> None:
    later = send.using(delay=60).enqueue("ann")
    with pytest.raises(ResultTimeout):
        later.result()
    with pytest.raises(ResultTimeout):
        later.result(timeout=50)
    assert later.result(timeout=50) == "sent to ann"
    assert timedelta(seconds=99) < queue.now - START < timedelta(seconds=102)


def test_a_handler_in_the_harness_may_not_wait_either(queue: Harness) -> None:
    job = waits.enqueue()
    with pytest.raises(JobFailed, match="inside its handler"):
        job.result()
    assert queue.enqueued(send) == []


@pytest.mark.requirement("N6")
def test_extensions_and_carried_variables_work_in_the_harness() -> None:
    extended = Freehold("sqlite:///never-opened.db")
    user: ContextVar[str] = ContextVar("user")
    ends: list[str] = []

    class Ends(Extension):
        def ended(self, attempt: EndedAttempt) -> None:
            ends.append(str(attempt.outcome.kind))

    extended.carry(user)
    extended.extend(Ends())

    @extended.task
    def current_user() -> str:
        return user.get()

    with Harness(extended):
        user.set("ann")
        job = current_user.enqueue()
        user.set("bob")
        assert job.result() == "ann"
    assert ends == ["success"]
