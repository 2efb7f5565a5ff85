"""timeline(): the row and the stored events of a job, merged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.model.history import Event, EventKind, timeline
from freehold.model.job import ErrorInfo, Job, Report
from freehold.model.state import Stage, State
from tests.model.builders import T0, a_job, a_lease, at

K = EventKind
#: Derived from columns of the job's row, and never stored as events.
ROUTINE = frozenset({K.CREATED, K.LEASED, K.STARTED, K.SUCCEEDED})


def an_event(kind: EventKind, seconds: float, **fields: Any) -> Event:
    defaults: dict[str, Any] = {
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
    return Event(**{**defaults, **fields})


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


def kinds(job: Job, *events: Event) -> list[tuple[float, str]]:
    entries = timeline(job, [*events])
    return [((entry.at - T0).total_seconds(), entry.kind.value) for entry in entries]


@pytest.mark.requirement("S2.5")
def test_a_waiting_job_has_only_been_created() -> None:
    (only,) = timeline(a_job(), [])
    assert (only.at, only.kind, only.state) == (T0, K.CREATED, State.QUEUED)


@pytest.mark.requirement("S2.5", "S4.1")
def test_a_job_that_was_created_pending_shows_it_for_ever() -> None:
    assert timeline(a_job(Stage.PENDING), [])[0].state is State.PENDING
    assert timeline(a_job(), [an_event(K.ENQUEUED, 3)])[0].state is State.PENDING


@pytest.mark.requirement("S2.5", "S2.3", "S2.4")
def test_a_lease_is_shown_with_its_owner_and_attempt() -> None:
    lease = a_lease(owner="w3", leased_at=at(2), started_at=at(4))
    job = a_job(Stage.LEASED, lease=lease, attempt=2)
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
def test_a_failed_attempt_is_shown_with_its_lease_its_error_and_its_retry() -> None:
    error = ErrorInfo("ValueError", "no")
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
    assert kinds(a_job(), event) == [(0, "created"), (2, "leased"), (3, "started"), (9, "retried")]
    last = timeline(a_job(), [event])[-1]
    assert (last.by, last.reason, last.error, last.attempt, last.due_at) == (
        "w1",
        "why",
        error,
        1,
        at(60),
    )


@pytest.mark.requirement("S2.5")
def test_actions_of_operators_belong_to_no_attempt() -> None:
    requested = an_event(K.CANCEL_REQUESTED, 5, attempt=2, by="ops", reason="enough")
    entry = timeline(a_job(Stage.LEASED, attempt=2), [requested])[-1]
    assert (entry.attempt, entry.by, entry.reason) == (None, "ops", "enough")


@pytest.mark.requirement("S2.5")
def test_a_success_is_derived_from_the_report() -> None:
    lost = an_event(K.LEASE_LOST, 8, attempt=1, token=4, leased_at=at(2), by="w1")
    assert kinds(a_success(20, leased=10, started=11), lost) == [
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
def test_a_success_without_a_recorded_start_is_shown_with_its_lease() -> None:
    assert kinds(a_success(10, leased=10)) == [(0, "created"), (10, "leased"), (10, "succeeded")]


@pytest.mark.requirement("S2.5")
def test_a_failure_is_shown_once_by_its_event_and_not_again_by_the_report() -> None:
    report = Report(State.FAILED, at(9), 1, None, None, "w1", 4, at(2), None, 2.0, None)
    job = a_job(None, state=State.FAILED, attempt=1, report=report)
    failed = an_event(K.FAILED, 9, state=State.FAILED, attempt=1, token=4, leased_at=at(2))
    assert kinds(job, failed) == [(0, "created"), (2, "leased"), (9, "failed")]


stored = st.sampled_from([kind for kind in K if kind not in ROUTINE])


@pytest.mark.requirement("S2.5")
@given(
    steps=st.lists(st.tuples(stored, st.integers(0, 5), st.none() | st.integers(0, 5)), max_size=8)
)
def test_the_timeline_contains_every_event_in_the_order_of_time(
    steps: list[tuple[EventKind, int, int | None]],
) -> None:
    clock, events = 0, []
    for kind, wait, ran in steps:
        leased = clock + wait
        clock = leased + (ran or 0)
        lease = {} if ran is None else {"token": 1, "leased_at": at(leased)}
        events.append(an_event(kind, clock, **lease))
    entries = timeline(a_job(), events)
    assert entries[0].kind is K.CREATED
    assert [entry.kind for entry in entries if entry.kind not in ROUTINE] == [
        event.kind for event in events
    ]
    assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)
    ran_count = sum(ran is not None for _, _, ran in steps)
    assert [entry.kind for entry in entries].count(K.LEASED) == ran_count
