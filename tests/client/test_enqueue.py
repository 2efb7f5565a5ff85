"""Enqueueing from Python: jobs are stored as requested."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from freehold import BadInput, Freehold, IllegalTransition, JobNotFound, Retry, State
from tests.client.helpers import agreet, awaited, call_of, claimed, greet, jobs_of

LATER = datetime(2050, 1, 1, 12, 30, 0, 123456, tzinfo=timezone(timedelta(hours=2)))


def test_a_job_is_stored_with_its_call(app: Freehold) -> None:
    task = app.task(greet)
    handle = task.enqueue("Ann", times=2)
    job = handle.read()
    assert handle.created
    assert (job.id, job.task, job.queue, job.state) == (handle.id, task.name, "default", "queued")
    assert call_of(task, job) == ((), {"name": "Ann", "times": 2})


def test_a_coroutine_enqueues_too(app: Freehold) -> None:
    task = app.task(agreet)

    async def produce() -> State:
        handle = await task.aenqueue("Ann")
        return (await handle.aread()).state

    assert awaited(app, produce()) is State.QUEUED


def test_a_task_can_still_be_called(app: Freehold) -> None:
    @app.task(name="double")
    def double(number: int) -> int:
        return 2 * number

    assert double(21) == 42
    assert jobs_of(app) == ()


def test_the_tasks_own_options_apply_and_can_be_changed_for_one_job(app: Freehold) -> None:
    task = app.task(queue="mail", priority=3, retry=Retry(max_attempts=7), timeout=30, tags=("a",))(
        greet
    )
    plain = task.enqueue("Ann").read()
    assert (plain.queue, plain.priority, plain.max_attempts) == ("mail", 3, 7)
    assert (plain.timeout_seconds, plain.tags) == (30, ("a",))
    other = task.using(queue="slow", priority=-1, max_attempts=2, timeout=0.5, tags=["b", "c"])
    changed = other.enqueue("Ann").read()
    assert (changed.queue, changed.priority, changed.max_attempts) == ("slow", -1, 2)
    assert (changed.timeout_seconds, changed.tags) == (0.5, ("b", "c"))
    assert task.enqueue("Ann").read().queue == "mail"


def test_a_timeout_is_kept_exactly(app: Freehold) -> None:
    a_minute = app.task(greet).using(timeout=timedelta(minutes=1))
    assert a_minute.enqueue("Ann").read().timeout_seconds == 60
    assert app.task(greet).using(timeout=0.1).enqueue("Ann").read().timeout_seconds == 0.1


def test_run_at_is_kept_to_the_microsecond_in_utc(app: Freehold) -> None:
    job = app.task(greet).using(run_at=LATER).enqueue("Ann").read()
    assert job.run_at == LATER
    assert job.run_at.tzinfo is UTC
    assert claimed(app) == []


def test_a_delay_counts_from_the_stores_clock(app: Freehold) -> None:
    task = app.task(greet)
    for delay in (90, 90.0, timedelta(seconds=90)):
        job = task.using(delay=delay).enqueue("Ann").read()
        assert job.run_at - job.created_at == timedelta(seconds=90)
    assert claimed(app) == []


def test_a_run_at_in_the_past_is_due_at_once(app: Freehold) -> None:
    app.task(greet).using(run_at=datetime(2001, 1, 1, tzinfo=UTC)).enqueue("Ann")
    assert len(claimed(app)) == 1


@pytest.mark.requirement("S0.14")
def test_higher_priority_runs_first(app: Freehold) -> None:
    task = app.task(greet)
    low, high = (task.using(priority=number).enqueue("Ann").id for number in (-5, 5))
    assert [attempt.job_id for attempt in claimed(app)] == [high, low]


@pytest.mark.requirement("S4.3")
def test_jobs_of_one_target_run_one_by_one(app: Freehold) -> None:
    task = app.task(greet).using(target="account-42")
    first, second = task.enqueue("Ann"), task.enqueue("Bob")
    assert [attempt.job_id for attempt in claimed(app)] == [first.id]
    assert second.read().target == "account-42"


@pytest.mark.requirement("S4.1")
def test_a_created_job_waits_for_its_enqueue(app: Freehold) -> None:
    handle = app.task(greet).create("Ann")
    assert handle.read().state is State.PENDING
    assert claimed(app) == []
    assert (handle.enqueue().status, handle.enqueue().status) == ("done", "already")
    assert [attempt.job_id for attempt in claimed(app)] == [handle.id]


@pytest.mark.requirement("S4.1")
def test_a_coroutine_creates_and_enqueues(app: Freehold) -> None:
    task = app.task(agreet)

    async def produce() -> tuple[str, str]:
        handle = await task.acreate("Ann")
        before = (await handle.aread()).state
        result = await handle.aenqueue()
        return before, result.state

    assert awaited(app, produce()) == ("pending", "queued")


@pytest.mark.requirement("S4.1", "S0.1")
def test_a_canceled_job_cannot_be_enqueued(app: Freehold) -> None:
    handle = app.task(greet).create("Ann")
    handle.cancel()
    with pytest.raises(IllegalTransition, match=f"job {handle.id} is canceled"):
        handle.enqueue()
    assert handle.read().state is State.CANCELED


@pytest.mark.requirement("S2.2")
def test_many_jobs_keep_their_order(app: Freehold) -> None:
    task = app.task(greet)
    handles = app.enqueue_many(task.prepare(f"n{number}") for number in range(2500))
    ids = [handle.id for handle in handles]
    assert len(set(ids)) == 2500
    assert ids == sorted(ids)
    found = app._client.store.read(ids)
    assert [call_of(task, found[id_])[1]["name"] for id_ in ids] == [f"n{n}" for n in range(2500)]


def test_many_jobs_from_a_coroutine_keep_their_order(app: Freehold) -> None:
    task = app.task(agreet)

    async def produce() -> list[str]:
        handles = await app.aenqueue_many([task.prepare(f"n{n}") for n in range(1200)])
        return [call_of(task, await handle.aread())[1]["name"] for handle in handles]

    assert awaited(app, produce()) == [f"n{n}" for n in range(1200)]


def test_no_jobs_are_enqueued_by_an_empty_list(app: Freehold) -> None:
    assert app.enqueue_many([]) == []


def test_enqueue_many_of_jobs_that_are_not_prepared_names_prepare(app: Freehold) -> None:
    handle: Any = app.task(greet).enqueue("Ann")
    with pytest.raises(BadInput, match=r"got a JobHandle, .* give task\.prepare\(\.\.\.\)"):
        app.enqueue_many([handle])
    with pytest.raises(BadInput, match=r"got a JobHandle"):
        awaited(app, app.aenqueue_many([handle]))


def test_preparing_writes_nothing(app: Freehold) -> None:
    app.task(greet).prepare("Ann")
    assert jobs_of(app) == ()


def test_one_bad_call_among_many_writes_none(app: Freehold) -> None:
    task = app.task(greet)
    with pytest.raises(BadInput):
        app.enqueue_many(task.prepare(name) for name in ("Ann", "\0"))
    assert jobs_of(app) == ()


def test_reading_a_deleted_job_names_it(app: Freehold) -> None:
    handle = app.task(greet).enqueue("Ann")
    app._client.store.delete([handle.id])
    with pytest.raises(JobNotFound, match=f"there is no job {handle.id} any more"):
        handle.read()


def test_a_closed_app_opens_again(sqlite_app: Freehold) -> None:
    task = sqlite_app.task(greet)
    first = task.enqueue("Ann").id
    sqlite_app.close()
    sqlite_app.close()
    assert [job.id for job in jobs_of(sqlite_app)] == [first]
