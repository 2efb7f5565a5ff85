"""The leases of one job by token, with what became of each.

A token is larger than those of all earlier claims, so the list shows which owner could write when:
a write with a token that is not the newest has no effect.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from freehold.model.history import Event, EventKind
from freehold.model.job import ErrorInfo, Job
from freehold.model.state import State

#: The outcome of a lease that has not ended.
HELD = "held"


class LeaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One lease. ``outcome``: held, succeeded, or the kind of the event that ended it. ``error``:
    its type and message."""

    token: int
    attempt: int
    owner: str | None
    leased_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    outcome: str
    reason: str | None = None
    error: str | None = None


def lease_history(job: Job, events: Iterable[Event]) -> list[LeaseRecord]:
    """Oldest first, as far as the events reach back."""
    ended = [
        _ended(event, event.token, event.leased_at)
        for event in events
        if event.token is not None and event.leased_at is not None
    ]
    by_token = {record.token: record for record in (*ended, *_last(job))}
    return [by_token[token] for token in sorted(by_token)]


def _ended(event: Event, token: int, leased_at: datetime) -> LeaseRecord:
    return LeaseRecord(
        token=token,
        attempt=event.attempt,
        owner=event.by,
        leased_at=leased_at,
        started_at=event.started_at,
        ended_at=event.at,
        outcome=event.kind.value,
        reason=event.reason,
        error=_text(event.error),
    )


def _last(job: Job) -> list[LeaseRecord]:
    """The lease that has no event: it still holds, or its attempt succeeded."""
    lease, report = job.lease, job.report
    if lease is not None:
        return [
            LeaseRecord(
                token=lease.token,
                attempt=job.attempt,
                owner=lease.owner,
                leased_at=lease.leased_at,
                started_at=lease.started_at,
                ended_at=None,
                outcome=HELD,
            )
        ]
    if report is None or report.state is not State.SUCCEEDED:
        return []
    if report.token is None or report.leased_at is None:
        return []
    return [
        LeaseRecord(
            token=report.token,
            attempt=job.attempt,
            owner=report.finished_by,
            leased_at=report.leased_at,
            started_at=report.started_at,
            ended_at=report.finished_at,
            outcome=EventKind.SUCCEEDED.value,
        )
    ]


def _text(error: ErrorInfo | None) -> str | None:
    return None if error is None else f"{error.type}: {error.message}"
