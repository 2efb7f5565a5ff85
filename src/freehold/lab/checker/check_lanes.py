"""I3, S0.14: one at a time in a lane, in order; and the order of claims outside of lanes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from freehold.lab.checker.indexed_history import IndexedHistory
from freehold.lab.checker.job_intervals import FOREVER, JobIntervals, lane_spans
from freehold.lab.checker.violation import Violation
from freehold.model.history import EventKind
from freehold.store.rows import micros_of


def one_at_a_time(case: IndexedHistory) -> Iterator[Violation]:
    """No two leases of one lane hold at once; whoever holds a lane holds it until it leaves. And
    tokens grow from one holder to the next: what a lane's jobs write to can tell who is later."""
    for target, lives in case.lanes().items():
        holds = sorted(hold for life in lives for hold in _holds(life))
        for (_, end, first, before), (start, _, second, after) in pairwise(holds):
            if first == second:
                continue
            if start < end:
                yield Violation("I3", second, f"was leased while job {first} held {target}", start)
            elif after <= before:
                yield Violation("S3.4", second, f"has a smaller token than job {first} before it")


def _holds(life: JobIntervals) -> Iterator[tuple[int, int, int, int]]:
    """From its first lease in the lane to its leaving; its id, and that lease's token."""
    for enters, leaves in lane_spans(life):
        first = next((span for span in life.spans if enters <= span.start < leaves), None)
        if first is not None:
            yield first.start, leaves, life.job.id, first.token


def in_order(case: IndexedHistory) -> Iterator[Violation]:
    """Strictly oldest first: nobody takes a lane while an older job stands in it.

    When a job took its lane, nobody tells: it may have been long before its claim. So it is
    wrong only if there was no moment, from its coming to its claim, without an older one.
    """
    for target, lives in case.lanes().items():
        for life in lives:
            older = sorted(
                span for other in lives if other.job.id < life.job.id for span in _stands(other)
            )
            for start, _, job_id, _ in _holds(life):
                came = next(enters for enters, leaves in lane_spans(life) if start < leaves)
                if _cover(older, came, start):
                    yield Violation("I3", job_id, f"overtook an older one in {target}", start)


def _stands(life: JobIntervals) -> list[tuple[int, int]]:
    """When a job surely stood in its lane: one that waits for its time comes later, and only its
    claim tells that it has."""
    if life.waits:
        return [(start, end) for start, end, *_ in _holds(life)]
    return lane_spans(life)


def _cover(spans: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether the spans leave no gap between the two moments."""
    reached = start
    for begins, ends in spans:
        if begins <= reached:
            reached = max(reached, ends)
    return reached > end


def by_priority(case: IndexedHistory) -> Iterator[Violation]:
    """Highest first, then oldest: nobody outside of lanes is claimed before a better one that
    stood ready in the same queue."""
    plain: dict[str, list[tuple[tuple[int, int], int, int]]] = {}
    for life in case.lives.values():
        if life.job.target is None and life.job.limit_key is None and not life.waits:
            rank = -life.job.priority, life.job.id
            plain.setdefault(life.job.queue, []).append((rank, life.created, _first_change(life)))
    for life in case.lives.values():
        if life.job.target is not None or not life.spans:
            continue
        rank = -life.job.priority, life.job.id
        for other, ready, changed in plain.get(life.job.queue, ()):
            if other < rank and any(ready < span.start < changed for span in life.spans):
                yield Violation("S0.14", life.job.id, f"was claimed before job {other[1]}")


def _first_change(life: JobIntervals) -> int:
    """Until then it stood ready, unless it has never changed."""
    moments = [span.start for span in life.spans[:1]]
    moments += [micros_of(event.at) for event in life.events if event.leased_at is None][:1]
    if any(event.kind is EventKind.PARKED for event in life.events):
        return 0
    return min(moments, default=FOREVER)
