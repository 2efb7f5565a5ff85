"""A job's life as the store tells it: its leases, and when it was live and in its lane."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from freehold.model.history import Event, EventKind
from freehold.model.job import Job
from freehold.model.state import FINAL, State
from freehold.store.rows import micros_of

FOREVER = 2**62
BY_HAND = frozenset({EventKind.RESUMED, EventKind.RETRIED_BY_HAND})


@dataclass(frozen=True, slots=True)
class Interval:
    """One lease, from its claim to whatever ended it. ``event`` is None for a success that the
    job's own row tells, and for a lease that still holds."""

    job: int
    token: int
    attempt: int
    owner: str | None
    start: int
    end: int
    kind: EventKind | None
    state: State
    due: int | None = None
    reason: str = ""

    @property
    def was_lost(self) -> bool:
        """Ended by recovery, not by its owner."""
        is_last = self.kind is EventKind.FAILED and "worker was lost" in self.reason
        return self.kind is EventKind.LEASE_LOST or is_last


class JobIntervals:
    """Everything that the store tells about one job."""

    def __init__(self, job: Job, events: Sequence[Event], waits: bool) -> None:
        self.job = job
        #: Whether it was to wait for a time, or for somebody to enqueue it.
        self.waits = waits
        self.events = events
        self.created = micros_of(job.created_at)
        self.spans = sorted(_spans(job, events), key=lambda span: span.start)
        self.by_token = {span.token: span for span in self.spans}

    def hand_between(self, start: int, end: int) -> bool:
        """Whether a person brought it back within this time."""
        return any(
            event.kind in BY_HAND and start <= micros_of(event.at) <= end for event in self.events
        )

    def steps(self) -> Iterator[Event | Interval]:
        """Events, and the success that only its row tells, in the order in which they happened."""
        told = {event.token for event in self.events if event.token is not None}
        yield from self.events
        yield from (span for span in self.spans if span.token not in told)


def _spans(job: Job, events: Sequence[Event]) -> Iterator[Interval]:
    told = set()
    for event in events:
        if event.token is None or event.leased_at is None:
            continue
        told.add(event.token)
        yield Interval(
            job.id,
            event.token,
            event.attempt,
            event.by,
            micros_of(event.leased_at),
            micros_of(event.at),
            event.kind,
            event.state,
            None if event.due_at is None else micros_of(event.due_at),
            event.reason or "",
        )
    report, lease = job.report, job.lease
    if report is not None and report.token is not None and report.token not in told:
        assert report.leased_at is not None
        yield Interval(
            job.id,
            report.token,
            job.attempt,
            report.by,
            micros_of(report.leased_at),
            micros_of(report.finished_at),
            EventKind(report.state.value),
            report.state,
        )
    if lease is not None:
        yield Interval(
            job.id,
            lease.token,
            job.attempt,
            lease.owner,
            micros_of(lease.leased_at),
            FOREVER,
            None,
            job.state,
        )


def live_spans(life: JobIntervals) -> list[tuple[int, int]]:
    """When the job was live: from its birth to its end, and again after each retry by hand."""
    spans: list[tuple[int, int]] = []
    start: int | None = life.created
    for event in life.events:
        at = micros_of(event.at)
        if event.state in FINAL and start is not None:
            spans.append((start, at))
            start = None
        elif event.state not in FINAL and start is None:
            start = at
    if start is not None:
        report = life.job.report
        spans.append((start, FOREVER if report is None else micros_of(report.finished_at)))
    return spans


def lane_spans(life: JobIntervals) -> list[tuple[int, int]]:
    """When the job stood in its lane: like live, but a failure that blocks does not leave it."""
    blocks = life.job.policy.blocks_lane(life.job.target is not None)
    spans: list[tuple[int, int]] = []
    start: int | None = life.created
    for event in life.events:
        at = micros_of(event.at)
        leaves = event.state in FINAL and not (event.state is State.FAILED and blocks)
        if leaves and start is not None:
            spans.append((start, at))
            start = None
        elif event.state not in FINAL and start is None:
            start = at
    if start is not None:
        report = life.job.report
        is_out = report is not None and life.job.stage is None
        spans.append((start, micros_of(report.finished_at) if report and is_out else FOREVER))
    return spans
