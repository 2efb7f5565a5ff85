"""The history of a job: what happened, when, why, and which worker or operator did it.

The routine path of a job (created, leased, started, succeeded) is stored in the columns of its
row and costs no event. Every other change writes one event, which also carries the lease of the
attempt that it ended. timeline() merges both.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from freehold.model.job import ErrorInfo, Job
from freehold.model.schedule import PREFIX, tick_of
from freehold.model.state import State


class EventKind(StrEnum):
    # derived from the job's row
    CREATED = "created"
    LEASED = "leased"
    STARTED = "started"
    SUCCEEDED = "succeeded"
    # stored as events: ends of attempts
    RETRIED = "retried"
    LEASE_LOST = "lease_lost"
    SNOOZED = "snoozed"
    SUSPENDED = "suspended"
    GIVEN_BACK = "given_back"
    DRAINED = "drained"
    PAUSED = "paused"
    CANCELED = "canceled"
    FAILED = "failed"
    # stored as events: actions of operators
    ENQUEUED = "enqueued"
    CANCEL_REQUESTED = "cancel_requested"
    PAUSE_REQUESTED = "pause_requested"
    RESUMED = "resumed"
    RETRIED_BY_HAND = "retried_by_hand"
    AMENDED = "amended"
    # stored as events: actions of the queue
    PARKED = "parked"
    UNPARKED = "unparked"


class Event(msgspec.Struct, frozen=True):
    """One stored change of a job."""

    id: int
    job_id: int
    at: datetime
    kind: EventKind
    state: State
    attempt: int
    by: str | None
    reason: str | None
    error: ErrorInfo | None
    token: int | None
    leased_at: datetime | None
    started_at: datetime | None
    due_at: datetime | None


#: An event number that is still missing after this time was never committed.
GAP_SECONDS = 5.0


def before_first_gap(after: int, events: list[Event], now: datetime) -> list[Event]:
    """The leading events before which no further event can appear.

    An event draws its number before its transaction commits, so on PostgreSQL a smaller number can
    appear after a larger one, and a reader that passed it would never see it. So reading stops at a
    missing number until it appears, or until the next event is old enough to prove that the number
    was dropped: its transaction was rolled back, or retention deleted the event.
    """
    oldest_open = now - timedelta(seconds=GAP_SECONDS)
    safe: list[Event] = []
    for event in events:
        if event.id != after + 1 and event.at > oldest_open:
            break
        safe.append(event)
        after = event.id
    return safe


class TimelineEntry(msgspec.Struct, frozen=True):
    """One line of a job's timeline."""

    at: datetime
    kind: EventKind
    state: State
    by: str | None = None
    reason: str | None = None
    attempt: int | None = None
    error: ErrorInfo | None = None
    due_at: datetime | None = None


def timeline(job: Job, events: list[Event]) -> list[TimelineEntry]:
    """Everything that happened to a job, oldest first."""
    first = State.PENDING if _began_pending(job, events) else State.QUEUED
    by, reason = _made_by(job)
    entries = [TimelineEntry(job.created_at, EventKind.CREATED, first, by, reason)]
    for event in events:
        if event.token is not None and event.leased_at is not None:
            entries += _lease_entries(event.leased_at, event.started_at, event.by, event.attempt)
        entries.append(_entry(event))
    if job.lease is not None:
        lease = job.lease
        entries += _lease_entries(lease.leased_at, lease.started_at, lease.owner, job.attempt)
    report = job.report
    if report is not None and report.state is State.SUCCEEDED:
        entries += _success_entries(job)
    # The sort is stable: entries with the same time keep their order.
    return sorted(entries, key=lambda entry: entry.at)


def _made_by(job: Job) -> tuple[str | None, str | None]:
    """The schedule that made the job, and its tick."""
    tick = tick_of(job.policy_json)
    if tick is None:
        return None, None
    name = schedule_of(job)
    missed = f", {tick.missed} missed before it" if tick.missed else ""
    return name and f"{PREFIX}{name}", f"tick of {tick.at.isoformat()}{missed}"


def schedule_of(job: Job) -> str | None:
    """The name of the schedule that made the job."""
    if tick_of(job.policy_json) is None:
        return None
    return next((t.removeprefix(PREFIX) for t in job.tags if t.startswith(PREFIX)), None)


def _began_pending(job: Job, events: list[Event]) -> bool:
    if job.state is State.PENDING:
        return True
    return any(event.kind is EventKind.ENQUEUED for event in events)


def _entry(event: Event) -> TimelineEntry:
    return TimelineEntry(
        event.at,
        event.kind,
        event.state,
        event.by,
        event.reason,
        event.attempt if event.token is not None else None,
        event.error,
        event.due_at,
    )


def _lease_entries(
    leased_at: datetime, started_at: datetime | None, owner: str | None, attempt: int
) -> list[TimelineEntry]:
    entries = [TimelineEntry(leased_at, EventKind.LEASED, State.ASSIGNED, owner, attempt=attempt)]
    if started_at is not None:
        entries.append(
            TimelineEntry(started_at, EventKind.STARTED, State.RUNNING, owner, attempt=attempt)
        )
    return entries


def _success_entries(job: Job) -> list[TimelineEntry]:
    report = job.report
    assert report is not None
    entries = []
    if report.leased_at is not None:
        entries = _lease_entries(
            report.leased_at, report.started_at, report.finished_by, job.attempt
        )
    entries.append(
        TimelineEntry(
            report.finished_at,
            EventKind.SUCCEEDED,
            State.SUCCEEDED,
            report.finished_by,
            attempt=job.attempt,
        )
    )
    return entries
