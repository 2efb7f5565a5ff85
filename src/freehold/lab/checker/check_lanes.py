"""I3, S0.14: one at a time in a lane, in order; and the order of claims outside of lanes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from freehold.lab.checker.indexed_history import IndexedHistory
from freehold.lab.checker.job_intervals import FOREVER, JobIntervals, lane_spans
from freehold.lab.checker.violation import Violation
from freehold.model.history import EventKind
from freehold.model.timestamps import micros_of


def one_at_a_time(history: IndexedHistory) -> Iterator[Violation]:
    """No two jobs of one lane are leased at once, and a job holds its lane until it leaves. Tokens
    grow from one holder to the next, so that an external system can refuse an older holder."""
    for lane_name, jobs in history.lanes().items():
        holds = sorted(hold for intervals in jobs for hold in _holds(intervals))
        for (_, end, first, before), (start, _, second, after) in pairwise(holds):
            if first == second:
                continue
            if start < end:
                text = f"was leased while job {first} held lane {lane_name}"
                yield Violation("I3", second, text, start)
            elif after <= before:
                text = f"has a smaller token than job {first}, which held its lane before"
                yield Violation("S3.4", second, text)


def _holds(intervals: JobIntervals) -> Iterator[tuple[int, int, int, int]]:
    """From the job's first lease in the lane until it leaves; its id, and the lease's token."""
    for enters, leaves in lane_spans(intervals):
        first = next((lease for lease in intervals.leases if enters <= lease.start < leaves), None)
        if first is not None:
            yield first.start, leaves, intervals.job.id, first.token


def in_order(history: IndexedHistory) -> Iterator[Violation]:
    """Strictly oldest first: no job takes a lane while an older job is in it.

    The time at which a job took its lane is not recorded, and may be long before its claim. So it
    is a violation only if an older job was in the lane at all times from its entry to its claim.
    """
    for lane_name, jobs in history.lanes().items():
        for intervals in jobs:
            older = sorted(
                span
                for other in jobs
                if other.job.id < intervals.job.id
                for span in _certain_lane_spans(other)
            )
            for start, _, job_id, _ in _holds(intervals):
                entered = next(enters for enters, leaves in lane_spans(intervals) if start < leaves)
                if _covers(older, entered, start):
                    yield Violation(
                        "I3", job_id, f"overtook an older job in lane {lane_name}", start
                    )


def _certain_lane_spans(intervals: JobIntervals) -> list[tuple[int, int]]:
    """When a job certainly was in its lane. A job with a delay enters its lane later, and only its
    claim proves that it has."""
    if intervals.waits:
        return [(start, end) for start, end, *_ in _holds(intervals)]
    return lane_spans(intervals)


def _covers(spans: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether the spans leave no gap between the two times."""
    reached = start
    for begins, ends in spans:
        if begins <= reached:
            reached = max(reached, ends)
    return reached > end


def by_priority(history: IndexedHistory) -> Iterator[Violation]:
    """Highest priority first, then oldest: a job outside of lanes is not claimed before a better
    one that was ready in the same queue."""
    ready_jobs: dict[str, list[tuple[tuple[int, int], int, int]]] = {}
    for intervals in history.jobs.values():
        if intervals.job.target is None and intervals.job.limit_key is None and not intervals.waits:
            rank = -intervals.job.priority, intervals.job.id
            ready_jobs.setdefault(intervals.job.queue, []).append(
                (rank, intervals.created, _first_change(intervals))
            )
    for intervals in history.jobs.values():
        if intervals.job.target is not None or not intervals.leases:
            continue
        rank = -intervals.job.priority, intervals.job.id
        for other, ready, changed in ready_jobs.get(intervals.job.queue, ()):
            if other < rank and any(ready < lease.start < changed for lease in intervals.leases):
                text = f"was claimed before job {other[1]}, which was ahead of it"
                yield Violation("S0.14", intervals.job.id, text)


def _first_change(intervals: JobIntervals) -> int:
    """The job was ready until then. A parked job counts as never ready."""
    times = [lease.start for lease in intervals.leases[:1]]
    times += [micros_of(event.at) for event in intervals.events if event.leased_at is None][:1]
    if any(event.kind is EventKind.PARKED for event in intervals.events):
        return 0
    return min(times, default=FOREVER)
