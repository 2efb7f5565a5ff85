"""A job's intervals according to the store: its leases, and when it was live and in its lane."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from freehold.model.history import Event, EventKind
from freehold.model.job import Job
from freehold.model.outcome import WORKER_LOST
from freehold.model.state import FINAL, State
from freehold.model.timestamps import micros_of

FOREVER = 2**62
OPERATOR_EVENTS = frozenset({EventKind.RESUMED, EventKind.RETRIED_BY_HAND})


#: Events of a misfit that goes on waiting.
_WITHIN_A_WAIT = frozenset(
    {
        EventKind.PARKED,
        EventKind.UNPARKED,
        EventKind.CANCEL_REQUESTED,
        EventKind.PAUSE_REQUESTED,
    }
)


@dataclass(frozen=True, slots=True)
class LeaseInterval:
    """One lease, from its claim to its end. ``kind`` is None for a lease that still holds."""

    job: int
    token: int
    attempt: int
    owner: str | None
    start: int
    end: int
    kind: EventKind | None
    state: State
    due: int | None = None
    #: Ended by recovery, not by its owner.
    was_lost: bool = False


class JobIntervals:
    """One job with its events and leases."""

    def __init__(
        self,
        job: Job,
        events: Sequence[Event],
        waits: bool,
        was_lost: Callable[[Event], bool],
    ) -> None:
        """``was_lost``: whether an event is the end of an attempt by a recovery of its lease."""
        self.job = job
        #: Whether it was enqueued with a delay or as pending.
        self.waits = waits
        self.events = events
        self.created = micros_of(job.created_at)
        self.leases = sorted(_leases(job, events, was_lost), key=lambda lease: lease.start)
        self.by_token = {lease.token: lease for lease in self.leases}

    def operator_acted_between(self, start: int, end: int) -> bool:
        """Whether an operator resumed or retried the job within this time."""
        return any(
            event.kind in OPERATOR_EVENTS and start <= micros_of(event.at) <= end
            for event in self.events
        )

    def misfit_since(self, lease: LeaseInterval) -> Event | None:
        """The first time that the job was parked as a misfit, within the wait that this lease
        belongs to. Anything else that moves the job ends a wait."""
        first = None
        for event in self.events:
            if event.token == lease.token:
                break
            if event.kind is EventKind.PARKED and event.token is not None:
                first = first or event
            elif event.kind not in _WITHIN_A_WAIT:
                first = None
        return first

    def steps(self) -> Iterator[Event | LeaseInterval]:
        """The events and, after them, the success, which is stored only in the job's row."""
        recorded_tokens = {event.token for event in self.events if event.token is not None}
        yield from self.events
        yield from (lease for lease in self.leases if lease.token not in recorded_tokens)


def lost_by_its_reason(event: Event) -> bool:
    """Of real processes, which record no recoveries."""
    is_last = event.kind is EventKind.FAILED and (event.reason or "").startswith(WORKER_LOST)
    return event.kind is EventKind.LEASE_LOST or is_last


def is_canceled_by_the_queue(event: Event) -> bool:
    """Without a lease and without an author, as every operator is: a sweep has canceled a job as
    late, or a fold a node because of a source."""
    return event.kind is EventKind.CANCELED and event.token is None and event.by is None


def _leases(
    job: Job, events: Sequence[Event], was_lost: Callable[[Event], bool]
) -> Iterator[LeaseInterval]:
    recorded_tokens = set()
    for event in events:
        if event.token is None or event.leased_at is None:
            continue
        recorded_tokens.add(event.token)
        yield LeaseInterval(
            job.id,
            event.token,
            event.attempt,
            event.by,
            micros_of(event.leased_at),
            micros_of(event.at),
            event.kind,
            event.state,
            None if event.due_at is None else micros_of(event.due_at),
            was_lost(event),
        )
    report, lease = job.report, job.lease
    if report is not None and report.token is not None and report.token not in recorded_tokens:
        assert report.leased_at is not None
        yield LeaseInterval(
            job.id,
            report.token,
            job.attempt,
            report.finished_by,
            micros_of(report.leased_at),
            micros_of(report.finished_at),
            EventKind(report.state.value),
            report.state,
        )
    if lease is not None:
        yield LeaseInterval(
            job.id,
            lease.token,
            job.attempt,
            lease.owner,
            micros_of(lease.leased_at),
            FOREVER,
            None,
            job.state,
        )


def live_spans(intervals: JobIntervals) -> list[tuple[int, int]]:
    """When the job was live: from its creation to its end, and again after an operator's retry."""
    spans: list[tuple[int, int]] = []
    start: int | None = intervals.created
    for event in intervals.events:
        at = micros_of(event.at)
        if event.state in FINAL and start is not None:
            spans.append((start, at))
            start = None
        elif event.state not in FINAL and start is None:
            start = at
    if start is not None:
        report = intervals.job.report
        spans.append((start, FOREVER if report is None else micros_of(report.finished_at)))
    return spans


def lane_spans(intervals: JobIntervals) -> list[tuple[int, int]]:
    """When the job was in its lane: while it was live, and after a failure that blocks the lane."""
    blocks = intervals.job.policy.blocks_lane(intervals.job.target is not None)
    spans: list[tuple[int, int]] = []
    start: int | None = intervals.created
    for event in intervals.events:
        at = micros_of(event.at)
        leaves = event.state in FINAL and not (event.state is State.FAILED and blocks)
        if leaves and start is not None:
            spans.append((start, at))
            start = None
        elif event.state not in FINAL and start is None:
            start = at
    if start is not None:
        report = intervals.job.report
        is_out = report is not None and intervals.job.stage is None
        spans.append((start, micros_of(report.finished_at) if report and is_out else FOREVER))
    return spans
