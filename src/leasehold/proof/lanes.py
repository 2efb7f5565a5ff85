"""I3, S0.14: one at a time in a lane, in order; and the order of claims outside of lanes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from leasehold.model.history import EventKind
from leasehold.proof.case import Case
from leasehold.proof.lives import FOREVER, Life, lane_spans
from leasehold.proof.violation import Violation
from leasehold.store.rows import micros_of


def one_at_a_time(case: Case) -> Iterator[Violation]:
    """No two leases of one lane hold at once; whoever holds a lane holds it until it leaves."""
    for target, lives in case.lanes().items():
        holds = sorted(hold for life in lives for hold in _holds(life))
        for (_, end, first), (start, _, second) in pairwise(holds):
            if start < end and first != second:
                yield Violation("I3", second, f"was leased while job {first} held {target}", start)


def _holds(life: Life) -> Iterator[tuple[int, int, int]]:
    """From its first lease in the lane to its leaving."""
    for enters, leaves in lane_spans(life):
        first = next((span for span in life.spans if enters <= span.start < leaves), None)
        if first is not None:
            yield first.start, leaves, life.job.id


def in_order(case: Case) -> Iterator[Violation]:
    """Strictly oldest first: nobody takes a lane while an older job stands in it."""
    for target, lives in case.lanes().items():
        holds = sorted(hold for life in lives for hold in _holds(life))
        for start, _, job_id in holds:
            taken = _taken_at(case.lives[job_id], lives, start)
            for older in lives:
                if older.job.id < job_id and all(_stood_in_lane(older, at) for at in taken):
                    yield Violation("I3", job_id, f"overtook job {older.job.id} in {target}", start)


def _taken_at(life: Life, lane: list[Life], start: int) -> list[int]:
    """When the lane can have become its own: when another one left it, or else at its claim.

    A job that comes back to its place finds the lane taken by whoever got it meanwhile.
    """
    left = {end for other in lane if other is not life for _, end in lane_spans(other)}
    return [
        end
        for end in sorted(left)
        if end <= start and any(enters <= end < leaves for enters, leaves in lane_spans(life))
    ] or [start]


def _stood_in_lane(life: Life, at: int) -> bool:
    """Jobs that wait for their time come into their lane later; when, nobody tells."""
    if life.waits:
        return any(start < at < end for start, end, _ in _holds(life))
    return any(enters < at < leaves for enters, leaves in lane_spans(life))


def by_priority(case: Case) -> Iterator[Violation]:
    """Highest first, then oldest: nobody outside of lanes is claimed before a better one that
    stood ready in the same queue."""
    plain: dict[str, list[tuple[tuple[int, int], int, int]]] = {}
    for life in case.lives.values():
        if life.job.target is None and not life.waits:
            rank = -life.job.priority, life.job.id
            plain.setdefault(life.job.queue, []).append((rank, life.created, _first_change(life)))
    for life in case.lives.values():
        if life.job.target is not None or not life.spans:
            continue
        rank = -life.job.priority, life.job.id
        for other, ready, changed in plain.get(life.job.queue, ()):
            if other < rank and any(ready < span.start < changed for span in life.spans):
                yield Violation("S0.14", life.job.id, f"was claimed before job {other[1]}")


def _first_change(life: Life) -> int:
    """Until then it stood ready, unless it has never changed."""
    moments = [span.start for span in life.spans[:1]]
    moments += [micros_of(event.at) for event in life.events if event.leased_at is None][:1]
    if any(event.kind is EventKind.PARKED for event in life.events):
        return 0
    return min(moments, default=FOREVER)
