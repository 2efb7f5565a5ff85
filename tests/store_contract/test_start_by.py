"""start_by: a job that has not started by its time is canceled, and never starts later."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from freehold.model.job import Job
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.model.state import Stage, State
from freehold.store.statements import Verb, run
from freehold.store.verbs import late
from freehold.store.verbs.claim import no_cursors
from tests.broken_rows import LOST_TOO_OFTEN, poison
from tests.stores import StoreUnderTest

pytestmark = pytest.mark.requirement("N5")


def cancel_late(store: StoreUnderTest) -> list[int]:
    return sorted(job.id for job in store.store.cancel_late(100))


def late_in(store: StoreUnderTest) -> float | None:
    return store.store.sweep_check(["t"]).late_seconds


def assert_canceled(job: Job, start_by: datetime) -> None:
    assert job.state is State.CANCELED
    assert job.reason == f"it had not started by {start_by:%Y-%m-%d %H:%M:%S} UTC (start_by)"
    assert job.report is not None
    assert job.report.started_at is None


def test_a_job_that_has_not_started_by_its_time_is_canceled(store: StoreUnderTest) -> None:
    start_by = store.now() + timedelta(seconds=60)
    job_id = store.add(start_by=start_by)
    plain = store.add()
    assert store.job(job_id).start_by == start_by
    assert late_in(store) == 60
    store.advance(59)
    assert cancel_late(store) == []
    store.advance(1)
    assert late_in(store) == 0
    assert cancel_late(store) == [job_id]
    assert_canceled(store.job(job_id), start_by)
    (event,) = store.store.events(job_id)
    assert (event.kind, event.by) == ("canceled", None)
    assert store.state(plain) == "queued"
    assert late_in(store) is None


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("target", [None, "lane"])
def test_no_claim_takes_a_late_job_before_the_sweep(
    store: StoreUnderTest, count: int, target: str | None
) -> None:
    """Neither the quick claim nor the full one, which decides about lanes."""
    store.add(start_by=60.0, target=target)
    store.advance(60)
    assert store.claim(count=count) == []
    plain = store.add()
    assert [attempt.job_id for attempt in store.claim(count=count)] == [plain]


def test_late_jobs_hold_up_no_later_job(store: StoreUnderTest) -> None:
    """More of them than one claim examines, with the cursor of one claimer."""
    cursors = no_cursors()
    for _ in range(30):
        store.add(start_by=60.0)
    plain = [store.add() for _ in range(3)]
    store.advance(60)
    assert [each.job_id for each in store.claim(count=2, cursors=cursors)] == plain[:2]
    assert [each.job_id for each in store.claim(count=2, cursors=cursors)] == plain[2:]


def test_a_job_runs_until_the_very_last_instant(store: StoreUnderTest) -> None:
    job_id = store.add(start_by=60.0)
    store.advance(59.999999)
    attempt = store.claim_one()
    store.advance(3600)
    assert cancel_late(store) == [], "it has started"
    assert late_in(store) is None
    assert store.job(job_id).stage is Stage.LEASED
    store.advance(-3600)
    assert store.end(attempt, OutcomeKind.SUCCESS)


STARTED: dict[str, tuple[OutcomeKind, dict[str, Any]]] = {
    "an error": (OutcomeKind.ERROR, {"delay_seconds": 0.0}),
    "a later retry": (OutcomeKind.RETRY_LATER, {"delay_seconds": 60.0}),
    "a snooze": (OutcomeKind.SNOOZE, {"delay_seconds": 60.0}),
    "a drain": (OutcomeKind.DRAIN, {}),
}


@pytest.mark.parametrize(("kind", "fields"), STARTED.values(), ids=STARTED.keys())
def test_a_retry_may_start_after_start_by(
    store: StoreUnderTest, kind: OutcomeKind, fields: dict[str, Any]
) -> None:
    job_id = store.add(start_by=30.0)
    assert store.end(store.claim_one(), kind, **fields)
    store.advance(60)
    assert cancel_late(store) == []
    store.store.make_ready(10)
    assert store.claim_one().job_id == job_id


def test_a_lost_worker_may_have_started_the_job(store: StoreUnderTest) -> None:
    job_id = store.add(start_by=30.0)
    store.claim_one()
    store.advance(31)
    store.store.recover(10, 0.0)
    assert cancel_late(store) == []
    assert store.job(job_id).start_by is None
    assert store.state(job_id) == "queued"


NOT_STARTED: dict[str, tuple[OutcomeKind, dict[str, Any]]] = {
    "a worker that gives it back": (OutcomeKind.GIVE_BACK, {}),
    "a misfit": (OutcomeKind.MISFIT, {"delay_seconds": 3600.0}),
}


@pytest.mark.parametrize(("kind", "fields"), NOT_STARTED.values(), ids=NOT_STARTED.keys())
@pytest.mark.parametrize("target", [None, "lane"])
def test_a_job_that_was_taken_but_never_started_still_has_its_time(
    store: StoreUnderTest, kind: OutcomeKind, fields: dict[str, Any], target: str | None
) -> None:
    job_id = store.add(start_by=60.0, target=target)
    assert store.end(store.claim_one(), kind, **fields)
    store.advance(60)
    assert store.claim() == []
    assert cancel_late(store) == [job_id]


def test_a_late_job_frees_its_lane(store: StoreUnderTest) -> None:
    first = store.add(target="lane")
    late = store.add(target="lane", start_by=60.0)
    last = store.add(target="lane")
    attempt = store.claim_one()
    assert store.claim() == []
    store.advance(10)
    assert store.end(attempt, OutcomeKind.SUCCESS)
    assert store.job(late).stage is Stage.LANE_HEAD
    store.advance(50)
    assert store.claim() == [], "the late job is still the first of its lane"
    assert cancel_late(store) == [late]
    assert store.claim_one().job_id == last
    assert store.state(first) == "succeeded"


def test_a_late_follower_leaves_the_lane_in_order(store: StoreUnderTest) -> None:
    first = store.add(target="lane")
    late = store.add(target="lane", start_by=60.0)
    last = store.add(target="lane")
    attempt = store.claim_one()
    assert store.claim() == []
    store.advance(29)
    store.advance(31)
    assert cancel_late(store) == [late]
    store.advance(-31)
    assert store.end(attempt, OutcomeKind.SUCCESS)
    assert store.claim_one().job_id == last
    assert store.state(first) == "succeeded"


def test_a_paused_job_is_canceled_too(store: StoreUnderTest) -> None:
    job_id = store.add(start_by=60.0)
    store.store.operate(OperatorVerb.PAUSE, [job_id], "ops", None)
    store.advance(60)
    assert cancel_late(store) == [job_id]


def test_a_job_that_is_resumed_in_time_keeps_its_time(store: StoreUnderTest) -> None:
    job_id = store.add(start_by=60.0)
    store.store.operate(OperatorVerb.PAUSE, [job_id], "ops", None)
    store.store.operate(OperatorVerb.RESUME, [job_id], "ops", None)
    store.advance(60)
    assert store.claim() == []
    assert cancel_late(store) == [job_id]


def test_a_pending_job_is_canceled_too(store: StoreUnderTest) -> None:
    job_id = store.add(start_by=60.0, pending=True)
    store.advance(60)
    assert cancel_late(store) == [job_id]


def test_a_parked_job_is_canceled_too(store: StoreUnderTest) -> None:
    job_id = store.add(start_by=60.0)
    assert store.claim(tasks=frozenset({"other"})) == []
    assert store.job(job_id).stage is Stage.PARKED
    store.advance(60)
    assert cancel_late(store) == [job_id]


def test_a_job_of_a_paused_queue_is_canceled_too(store: StoreUnderTest) -> None:
    job_id = store.add(start_by=60.0)
    store.store.pause_queue("default", "ops", None, None)
    store.advance(60)
    assert cancel_late(store) == [job_id]


def test_seconds_are_counted_from_the_time_when_the_job_falls_due(store: StoreUnderTest) -> None:
    delayed = store.add(delay_seconds=100.0, start_by=10.0)
    timed = store.add(run_at=store.now() + timedelta(seconds=50), start_by=10.0)
    past = store.add(run_at=store.now() - timedelta(seconds=50), start_by=10.0)
    store.advance(60)
    assert cancel_late(store) == [timed, past]
    store.advance(49)
    store.store.make_ready(10)
    assert store.claim_one().job_id == delayed


def test_an_operators_retry_runs_a_late_job(store: StoreUnderTest) -> None:
    job_id = store.add(start_by=60.0)
    store.advance(61)
    cancel_late(store)
    store.store.operate(OperatorVerb.RETRY, [job_id], "ops", None)
    assert store.job(job_id).start_by is None
    assert cancel_late(store) == []
    assert store.claim_one().job_id == job_id


def test_a_canceled_job_stays_canceled_if_the_clock_goes_back(store: StoreUnderTest) -> None:
    over, other = store.add(start_by=60.0), store.add(start_by=120.0)
    store.advance(61)
    assert cancel_late(store) == [over]
    store.advance(-3600)
    assert cancel_late(store) == []
    assert store.state(over) == "canceled"
    assert store.claim_one().job_id == other, "its time is in the future again"


def _frozen_sweep(store: StoreUnderTest, meanwhile: Callable[[], None]) -> list[Job]:
    """A sweep that has read the late jobs and then stands still for a while."""

    def interrupted() -> Verb[list[Job]]:
        steps = late.cancel_late(100)
        group = next(steps)
        while not group.writes:
            group = steps.send((yield group))
        meanwhile()
        try:
            while True:
                group = steps.send((yield group))
        except StopIteration as ended:
            canceled: list[Job] = ended.value
            return canceled

    return run(interrupted(), store.database.session())


def test_a_job_that_a_worker_takes_during_the_sweep_stays(store: StoreUnderTest) -> None:
    """The sweep has read it as late; the clock goes back, and a worker claims it."""
    job_id = store.add(start_by=60.0)
    store.advance(60)

    def claim() -> None:
        store.advance(-1)
        store.claim_one()

    assert _frozen_sweep(store, claim) == []
    assert store.job(job_id).stage is Stage.LEASED


def test_a_job_that_an_operator_retries_during_the_sweep_stays(store: StoreUnderTest) -> None:
    """It is in the stage in which the frozen sweep has read it."""
    job_id = store.add(start_by=60.0)
    store.advance(61)
    before = store.job(job_id).stage

    def retry() -> None:
        assert cancel_late(store) == [job_id]
        store.store.operate(OperatorVerb.RETRY, [job_id], "ops", None)
        assert store.job(job_id).stage is before

    assert _frozen_sweep(store, retry) == []
    assert store.claim_one().job_id == job_id


def test_keys_are_free_after_a_late_job(store: StoreUnderTest) -> None:
    job_id = store.add(start_by=60.0, unique_key="k")
    assert store.add(start_by=60.0, unique_key="k") == job_id
    store.advance(60)
    cancel_late(store)
    assert store.add(start_by=60.0, unique_key="k") != job_id


def test_a_row_that_is_set_aside_waits_for_a_person(store: StoreUnderTest) -> None:
    """No sweep could cancel it: it must not hold up the others."""
    bad, good = store.add(start_by=60.0), store.add(start_by=60.0)
    poison(store, bad, LOST_TOO_OFTEN)
    store.advance(60)
    (aside,) = store.store.set_aside_swept()
    assert aside.job_id == bad
    assert cancel_late(store) == [good]
    assert store.sql(f"select stage from {{s}}job where id = {bad}") == [("p",)]
    assert late_in(store) is None
