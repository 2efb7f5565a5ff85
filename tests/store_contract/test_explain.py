"""Why a job is not running: every cause, read from real stores."""

from __future__ import annotations

from datetime import timedelta

import pytest

from freehold.model.explain import Cause
from freehold.model.job import NewJob
from freehold.model.limit import ALL_QUEUES, Limit, Rate
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.model.schedule import ScheduleDefinition
from freehold.model.timing import Every
from freehold.model.worker_info import Heartbeat, WorkerState
from freehold.operator import Operator
from tests.stores import StoreUnderTest

pytestmark = pytest.mark.requirement("S4.3")


def causes(store: StoreUnderTest, job_id: int) -> dict[str, Cause]:
    return {cause.code: cause for cause in Operator(store.store).explain(job_id)}


def worker(
    store: StoreUnderTest,
    *,
    running: int = 0,
    tasks: tuple[str, ...] = ("t",),
    queues: tuple[str, ...] = ("default",),
    state: WorkerState = WorkerState.WORKING,
) -> None:
    store.store.heartbeat(
        Heartbeat(
            owner="w9",
            host="here",
            pid=1,
            concurrency=4,
            queues=queues,
            tasks=tasks,
            version="0",
            state=state,
            running=running,
        ),
        30.0,
    )


def test_a_job_with_a_time_to_start_by(store: StoreUnderTest) -> None:
    worker(store)
    job_id = store.add(start_by=60.0)
    assert [*causes(store, job_id)] == ["in_queue", "start_by"]
    assert "in 60 s, or it is canceled" in causes(store, job_id)["start_by"].text
    store.advance(60)
    worker(store)
    assert "which has passed" in causes(store, job_id)["start_by"].text
    store.store.cancel_late(10)
    assert "it had not started by" in causes(store, job_id)["finished"].text


def test_behind_other_jobs_of_its_queue(store: StoreUnderTest) -> None:
    worker(store)
    store.add(), store.add()
    found = causes(store, store.add())
    assert set(found) == {"in_queue"}
    assert "2 jobs are ahead of it in queue default" in found["in_queue"].text


def test_not_due(store: StoreUnderTest) -> None:
    found = causes(store, store.add(delay_seconds=60.0))
    assert set(found) == {"not_due"}
    assert "in 60 s" in found["not_due"].text


def test_no_worker_alive_for_the_queue(store: StoreUnderTest) -> None:
    worker(store, queues=("other",))
    found = causes(store, store.add())
    assert set(found) == {"no_worker"}
    assert "freehold worker --app … --queue default" in (found["no_worker"].remedy or "")


def test_a_worker_that_went_silent_is_no_worker(store: StoreUnderTest) -> None:
    worker(store)
    job_id = store.add()
    assert set(causes(store, job_id)) == {"in_queue"}
    store.advance(31.0)
    assert set(causes(store, job_id)) == {"no_worker"}


def test_a_draining_worker_is_no_worker(store: StoreUnderTest) -> None:
    worker(store, state=WorkerState.DRAINING)
    assert set(causes(store, store.add())) == {"no_worker"}


def test_no_worker_knows_the_task(store: StoreUnderTest) -> None:
    worker(store, tasks=("other",))
    job_id = store.add()
    assert set(causes(store, job_id)) == {"unknown_task"}
    store.claim(tasks=frozenset({"other"}))  # meets it, and parks it
    assert set(causes(store, job_id)) == {"unknown_task"}


def test_no_free_slot(store: StoreUnderTest) -> None:
    worker(store, running=4)
    found = causes(store, store.add())
    assert set(found) == {"no_free_slot"}
    assert "all 4 slots of the 1 worker that" in found["no_free_slot"].text


def test_its_lane_is_busy_or_blocked(store: StoreUnderTest) -> None:
    worker(store)
    first, second = store.add(target="lane"), store.add(target="lane")
    attempt = store.claim_one()
    store.claim()  # meets the second
    busy = causes(store, second)
    assert set(busy) == {"lane_busy"}
    assert f"job {first}" in busy["lane_busy"].text
    store.end(attempt, OutcomeKind.PAUSE, reason="budget spent")
    blocked = causes(store, second)
    assert set(blocked) == {"lane_blocked"}
    assert "budget spent" in blocked["lane_blocked"].text
    assert blocked["lane_blocked"].remedy == f"resume or cancel job {first}"


def test_its_lane_is_paused_as_such(store: StoreUnderTest) -> None:
    worker(store)
    job_id = store.add(target="lane")
    store.store.pause_lane("lane", "ann", "audit", store.now() + timedelta(hours=1))
    for _ in range(2):  # before and after a claim has met it
        found = causes(store, job_id)
        assert set(found) == {"lane_paused"}
        assert "by ann until" in found["lane_paused"].text
        assert "audit" in found["lane_paused"].text
        store.claim()


@pytest.mark.parametrize("name", ["default", ALL_QUEUES])
def test_its_queue_or_everything_is_paused(store: StoreUnderTest, name: str) -> None:
    worker(store)
    job_id = store.add()
    store.store.pause_queue(name, "ann", "audit", store.now() + timedelta(hours=1))
    assert store.claim() == []
    found = causes(store, job_id)
    assert set(found) == {"queue_paused"}
    assert "by ann until" in found["queue_paused"].text
    store.advance(3600.0)
    assert set(causes(store, job_id)) == {"no_worker"}


@pytest.mark.requirement("S0.10")
@pytest.mark.parametrize("name", ["default", ALL_QUEUES])
def test_the_limit_of_its_queue_or_of_all_is_full(store: StoreUnderTest, name: str) -> None:
    worker(store)
    store.store.set_queue_limit(name, Limit(1))
    first, second = store.add(), store.add()
    assert set(causes(store, second)) == {"in_queue"}
    store.claim()
    found = causes(store, second)
    assert set(found) == {"limit_full"}
    assert f"is reached: 1 of 1 running; job {first}" in found["limit_full"].text


def test_the_limit_of_its_key_is_full(store: StoreUnderTest) -> None:
    worker(store)
    store.store.set_key_limit("smtp", Limit(1))
    first, second = store.add(limit_key="smtp"), store.add(limit_key="smtp")
    store.claim()
    found = causes(store, second)
    assert set(found) == {"limit_full"}
    assert f"limit of key smtp is reached: 1 of 1 running; job {first}" in found["limit_full"].text


def test_the_rate_of_its_queue_or_key_is_spent(store: StoreUnderTest) -> None:
    worker(store)
    store.store.set_queue_limit("default", Limit(rate=Rate(1, 60.0)))
    store.store.set_key_limit("smtp", Limit(rate=Rate(1, 60.0)))
    store.add(limit_key="smtp")
    second = store.add(limit_key="smtp")
    store.claim()
    found = [cause.text for cause in Operator(store.store).explain(second)]
    assert [text for text in found if "1 of 1 starts in the last 60 s" in text] == found
    assert len(found) == 2


def test_a_spent_rate_says_when_the_next_may_start(store: StoreUnderTest) -> None:
    """A start leaves the window with its slot, a twentieth of the period at most after it."""
    worker(store)
    store.store.set_queue_limit("default", Limit(rate=Rate(3, 60.0)))
    last = [store.add() for _ in range(4)][-1]
    assert len(store.claim(count=1)) == 1
    store.advance(20.0)
    assert len(store.claim(count=2)) == 2
    (rules,) = store.store.queue_rules("default")
    seconds = rules.use.next_start_seconds
    assert seconds is not None
    assert 40.0 <= seconds <= 43.0
    (cause,) = Operator(store.store).explain(last)
    assert f"the next may start in {seconds:.0f} s" in cause.text
    store.advance(seconds - 0.01)
    assert store.claim() == []
    store.advance(0.02)
    assert len(store.claim()) == 1


def test_states_that_wait_for_nothing_of_this(store: StoreUnderTest) -> None:
    pending, paused = store.add(pending=True), store.add()
    store.store.operate(OperatorVerb.PAUSE, [paused], "ann", "later")
    leased = store.add()
    store.claim()
    assert set(causes(store, pending)) == {"pending"}
    assert set(causes(store, paused)) == {"paused"}
    assert set(causes(store, leased)) == {"leased"}


def test_a_job_whose_schedule_skips_for_it(store: StoreUnderTest) -> None:
    definition = ScheduleDefinition(name="books", timing=Every(hours=1), job=NewJob(task="t"))
    store.store.put_schedule(definition, "ann")
    store.advance(3600)
    store.store.fire_schedules(10, 0.5)
    worker(store)
    (job_id,) = (row[0] for row in store.sql("select id from {s}job"))
    assert [*causes(store, job_id)] == ["in_queue", "schedule"]
    assert "schedule books made it for the tick of" in causes(store, job_id)["schedule"].text
    store.advance(3600)
    store.store.fire_schedules(10, 0.5)
    worker(store)
    skips = causes(store, job_id)["schedule_skips"]
    assert "skips its ticks while this job is live" in skips.text
    store.store.operate(OperatorVerb.PAUSE, [job_id], "ops", None)
    assert [*causes(store, job_id)] == ["paused", "schedule_skips"]
    store.store.drop_schedule("books")
    assert [*causes(store, job_id)] == ["paused"]
    store.store.operate(OperatorVerb.CANCEL, [job_id], "ops", None)
    assert [*causes(store, job_id)] == ["finished"]
