"""What happened to a job, readable afterwards: in order, with who, when and why.

The routine way of a job (created, leased, started, succeeded) is told by the columns of its
row and costs no event. Every other change leaves one event, which also carries the lease of
the attempt that it ended. timeline() tells both as one story.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from freehold.model.job import Error, Job
from freehold.model.state import State


class EventKind(StrEnum):
    # told by the job's row
    CREATED = "created"
    LEASED = "leased"
    STARTED = "started"
    SUCCEEDED = "succeeded"
    # kept as events: endings of attempts
    RETRIED = "retried"
    LEASE_LOST = "lease_lost"
    SNOOZED = "snoozed"
    GIVEN_BACK = "given_back"
    DRAINED = "drained"
    PAUSED = "paused"
    CANCELED = "canceled"
    FAILED = "failed"
    # kept as events: what people did
    ENQUEUED = "enqueued"
    CANCEL_REQUESTED = "cancel_requested"
    PAUSE_REQUESTED = "pause_requested"
    RESUMED = "resumed"
    RETRIED_BY_HAND = "retried_by_hand"
    # kept as events: what the queue did
    PARKED = "parked"
    UNPARKED = "unparked"


class Event(msgspec.Struct, frozen=True):
    """One kept change of a job."""

    id: int
    job_id: int
    at: datetime
    kind: EventKind
    state: State
    attempt: int
    by: str | None
    reason: str | None
    error: Error | None
    token: int | None
    leased_at: datetime | None
    started_at: datetime | None
    due_at: datetime | None


#: A number that is missing after this long will not come any more.
SETTLE_SECONDS = 5.0


def settled(after: int, events: list[Event], now: datetime) -> list[Event]:
    """Of events in order, those before which none can appear any more.

    An event draws its number before its transaction commits, so that on PostgreSQL a smaller
    number can appear after a larger one. A reader that passed over it would never see it. So
    nobody reads beyond a missing number, until it has come, or what stands behind it is so old
    that the number was given up: its transaction was rolled back, or the event forgotten.
    """
    oldest_open = now - timedelta(seconds=SETTLE_SECONDS)
    safe: list[Event] = []
    for event in events:
        if event.id != after + 1 and event.at > oldest_open:
            break
        safe.append(event)
        after = event.id
    return safe


class TimelineEntry(msgspec.Struct, frozen=True):
    """One line of a job's story."""

    at: datetime
    kind: EventKind
    state: State
    by: str | None = None
    reason: str | None = None
    attempt: int | None = None
    error: Error | None = None
    due_at: datetime | None = None


def timeline(job: Job, events: list[Event]) -> list[TimelineEntry]:
    """The whole story of a job, oldest first."""
    first = State.PENDING if _began_pending(job, events) else State.QUEUED
    story = [TimelineEntry(job.created_at, EventKind.CREATED, first)]
    for event in events:
        if event.token is not None and event.leased_at is not None:
            story += _lease_entries(event.leased_at, event.started_at, event.by, event.attempt)
        story.append(_entry(event))
    if job.lease is not None:
        lease = job.lease
        story += _lease_entries(lease.leased_at, lease.started_at, lease.owner, job.attempt)
    report = job.report
    if report is not None and report.state is State.SUCCEEDED:
        story += _success_entries(job)
    # Stable: what shares a time keeps the order in which it was told.
    return sorted(story, key=lambda moment: moment.at)


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
    moments = [TimelineEntry(leased_at, EventKind.LEASED, State.ASSIGNED, owner, attempt=attempt)]
    if started_at is not None:
        moments.append(
            TimelineEntry(started_at, EventKind.STARTED, State.RUNNING, owner, attempt=attempt)
        )
    return moments


def _success_entries(job: Job) -> list[TimelineEntry]:
    report = job.report
    assert report is not None
    moments = []
    if report.leased_at is not None:
        moments = _lease_entries(report.leased_at, report.started_at, report.by, job.attempt)
    moments.append(
        TimelineEntry(
            report.finished_at,
            EventKind.SUCCEEDED,
            State.SUCCEEDED,
            report.by,
            attempt=job.attempt,
        )
    )
    return moments
