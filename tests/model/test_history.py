"""timeline(): the row and the kept events of a job, told as one story."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.model.history import Event, EventKind, timeline
from freehold.model.job import Error, Job, Report
from freehold.model.state import Stage, State
from tests.model.building import T0, a_job, a_lease, at

K = EventKind
#: Told by columns of the job's row, and never kept as events.
ROUTINE = frozenset({K.CREATED, K.LEASED, K.STARTED, K.SUCCEEDED})


def an_event(kind: EventKind, seconds: float, **fields: Any) -> Event:
    ordinary: dict[str, Any] = {
        "id": 1,
        "job_id": 7,
        "at": at(seconds),
        "kind": kind,
        "state": State.QUEUED,
        "attempt": 0,
        "by": None,
        "reason": None,
        "error": None,
        "token": None,
        "leased_at": None,
        "started_at": None,
        "due_at": None,
    }
    return Event(**{**ordinary, **fields})


def a_success(seconds: float, leased: float, started: float | None = None) -> Job:
    report = Report(
        State.SUCCEEDED,
        at(seconds),
        2,
        {"sum": 3},
        None,
        "w2",
        5,
        at(leased),
        None if started is None else at(started),
        leased,
        None,
    )
    return a_job(None, attempt=2, report=report)


def told(job: Job, *events: Event) -> list[tuple[float, str]]:
    story = timeline(job, [*events])
    return [((moment.at - T0).total_seconds(), moment.kind.value) for moment in story]


@pytest.mark.requirement("S2.5")
def test_a_waiting_job_has_only_been_created() -> None:
    (only,) = timeline(a_job(), [])
    assert (only.at, only.kind, only.state) == (T0, K.CREATED, State.QUEUED)


@pytest.mark.requirement("S2.5", "S4.1")
def test_a_job_that_began_pending_says_so_ever_after() -> None:
    assert timeline(a_job(Stage.NEW), [])[0].state is State.PENDING
    assert timeline(a_job(), [an_event(K.ENQUEUED, 3)])[0].state is State.PENDING


@pytest.mark.requirement("S2.5", "S2.3", "S2.4")
def test_a_lease_is_told_with_its_owner_and_attempt() -> None:
    lease = a_lease(owner="w3", leased_at=at(2), started_at=at(4))
    job = a_job(Stage.HELD, lease=lease, attempt=2)
    _, leased, started = timeline(job, [])
    assert (leased.kind, leased.state, leased.by, leased.attempt, leased.at) == (
        K.LEASED,
        State.ASSIGNED,
        "w3",
        2,
        at(2),
    )
    assert (started.kind, started.state, started.by, started.at) == (
        K.STARTED,
        State.RUNNING,
        "w3",
        at(4),
    )


@pytest.mark.requirement("S2.5")
def test_an_attempt_that_ended_badly_tells_its_lease_its_error_and_what_follows() -> None:
    error = Error("ValueError", "no")
    event = an_event(
        K.RETRIED,
        9,
        attempt=1,
        by="w1",
        reason="why",
        error=error,
        token=4,
        leased_at=at(2),
        started_at=at(3),
        due_at=at(60),
    )
    assert told(a_job(), event) == [(0, "created"), (2, "leased"), (3, "started"), (9, "retried")]
    last = timeline(a_job(), [event])[-1]
    assert (last.by, last.reason, last.error, last.attempt, last.due_at) == (
        "w1",
        "why",
        error,
        1,
        at(60),
    )


@pytest.mark.requirement("S2.5")
def test_what_people_did_belongs_to_no_attempt() -> None:
    asked = an_event(K.CANCEL_REQUESTED, 5, attempt=2, by="ops", reason="enough")
    moment = timeline(a_job(Stage.HELD, attempt=2), [asked])[-1]
    assert (moment.attempt, moment.by, moment.reason) == (None, "ops", "enough")


@pytest.mark.requirement("S2.5")
def test_a_success_is_told_by_the_report() -> None:
    lost = an_event(K.LEASE_LOST, 8, attempt=1, token=4, leased_at=at(2), by="w1")
    assert told(a_success(20, leased=10, started=11), lost) == [
        (0, "created"),
        (2, "leased"),
        (8, "lease_lost"),
        (10, "leased"),
        (11, "started"),
        (20, "succeeded"),
    ]
    last = timeline(a_success(20, leased=10), [])[-1]
    assert (last.state, last.by, last.attempt) == (State.SUCCEEDED, "w2", 2)


@pytest.mark.requirement("S2.5")
def test_a_success_too_fast_to_be_seen_running_was_leased_nonetheless() -> None:
    assert told(a_success(10, leased=10)) == [(0, "created"), (10, "leased"), (10, "succeeded")]


@pytest.mark.requirement("S2.5")
def test_a_failure_is_told_once_by_its_event_and_not_again_by_the_report() -> None:
    report = Report(State.FAILED, at(9), 1, None, None, "w1", 4, at(2), None, 2.0, None)
    job = a_job(None, state=State.FAILED, attempt=1, report=report)
    failed = an_event(K.FAILED, 9, state=State.FAILED, attempt=1, token=4, leased_at=at(2))
    assert told(job, failed) == [(0, "created"), (2, "leased"), (9, "failed")]


kept = st.sampled_from([kind for kind in K if kind not in ROUTINE])


@pytest.mark.requirement("S2.5")
@given(
    steps=st.lists(st.tuples(kept, st.integers(0, 5), st.none() | st.integers(0, 5)), max_size=8)
)
def test_no_event_is_left_out_and_the_story_runs_forward(
    steps: list[tuple[EventKind, int, int | None]],
) -> None:
    clock, events = 0, []
    for kind, wait, ran in steps:
        leased = clock + wait
        clock = leased + (ran or 0)
        lease = {} if ran is None else {"token": 1, "leased_at": at(leased)}
        events.append(an_event(kind, clock, **lease))
    story = timeline(a_job(), events)
    assert story[0].kind is K.CREATED
    assert [moment.kind for moment in story if moment.kind not in ROUTINE] == [
        event.kind for event in events
    ]
    assert [moment.at for moment in story] == sorted(moment.at for moment in story)
    ran_count = sum(ran is not None for _, _, ran in steps)
    assert [moment.kind for moment in story].count(K.LEASED) == ran_count
