"""Pictures of attempts over time: bars on a scale, as numbers for SVG. Pure.

A bar is a lease: pale from the claim to the start, full from the start to the end. In a swimlane
only the running part counts, because that is what uses a slot; bars that overlap are put below each
other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from freehold.model.attempt_span import AttemptSpan
from freehold.model.lease_history import HELD, LeaseRecord

#: The width of a picture in units of its own.
WIDTH = 1000.0
#: A bar that is shorter could not be seen.
_MIN_WIDTH = 3.0
#: Lines of a lane; further bars that overlap are drawn over others.
_ROWS_LIMIT = 8
#: Workers of a picture that are gone, the newest.
_GONE_LIMIT = 8
#: Colours by outcome; the words of the others are their own.
_KINDS = {
    "succeeded": "succeeded",
    "running": "running",
    HELD: "running",
    "failed": "failed",
    "retried": "failed",
    "lease_lost": "lost",
    "canceled": "canceled",
    "paused": "paused",
}


class TimeScale(NamedTuple):
    since: datetime
    until: datetime

    def x(self, at: datetime) -> float:
        length = max((self.until - self.since).total_seconds(), 1e-6)
        part = (at - self.since).total_seconds() / length
        return round(WIDTH * min(max(part, 0.0), 1.0), 1)

    @property
    def marks(self) -> list[datetime]:
        """Times at even distances, for labels."""
        return [self.since + (self.until - self.since) * part / 4 for part in range(5)]


class Bar(NamedTuple):
    """``start``: where the pale part ends; ``row``: its line within its lane."""

    x: float
    start: float
    end: float
    row: int
    kind: str
    title: str
    job_id: int

    @property
    def width(self) -> float:
        return round(max(self.end - self.x, _MIN_WIDTH), 1)

    @property
    def ran(self) -> float:
        return round(max(self.x + self.width - self.start, 0.0), 1)


class Swimlane(NamedTuple):
    """The bars of one worker."""

    worker: str
    is_alive: bool
    bars: tuple[Bar, ...]
    rows: int


def kind_of(outcome: str) -> str:
    """The colour of an outcome."""
    return _KINDS.get(outcome, "queued")


def swimlanes(
    spans: Iterable[AttemptSpan], alive: Sequence[str], scale: TimeScale
) -> tuple[Swimlane, ...]:
    """Live workers in their order, then the last ones that are gone, the newest first."""
    by_worker: dict[str, list[AttemptSpan]] = {owner: [] for owner in alive}
    for span in sorted(spans, key=lambda span: (span.started_at or span.leased_at, span.job_id)):
        by_worker.setdefault(span.worker, []).append(span)
    gone = [owner for owner in by_worker if owner not in alive]
    gone.sort(key=lambda owner: by_worker[owner][-1].leased_at, reverse=True)
    return tuple(
        Swimlane(owner, owner in alive, *_packed(by_worker[owner], scale))
        for owner in (*alive, *gone[:_GONE_LIMIT])
    )


def scale_of(spans: Sequence[AttemptSpan], since: datetime, until: datetime) -> TimeScale:
    """Not longer than the picture needs, but at least half a minute."""
    first = min((span.leased_at for span in spans), default=since)
    return TimeScale(max(since, min(first, until - timedelta(seconds=30))), until)


def _packed(spans: Sequence[AttemptSpan], scale: TimeScale) -> tuple[tuple[Bar, ...], int]:
    """Each bar in the first line that is free at its beginning."""
    ends: list[float] = []
    bars = []
    for span in spans:
        bar = _bar(span, scale)
        bar = bar._replace(x=bar.start)
        row = next((n for n, end in enumerate(ends) if end <= bar.x), len(ends))
        if row == _ROWS_LIMIT:
            row = ends.index(min(ends))
        ends[row : row + 1] = [bar.end]
        bars.append(bar._replace(row=row))
    return tuple(bars), max(len(ends), 1)


def _bar(span: AttemptSpan, scale: TimeScale) -> Bar:
    end = span.ended_at or scale.until
    task = f"{span.task}, " if span.task else ""
    outcome = span.outcome.replace("_", " ")
    title = f"job {span.job_id}: {task}attempt {span.number}, token {span.token}, {outcome}"
    start = span.started_at or (end if span.outcome == "running" else span.leased_at)
    return Bar(
        scale.x(span.leased_at),
        scale.x(start),
        scale.x(end),
        0,
        kind_of(span.outcome),
        title,
        span.job_id,
    )


class LeasePicture(NamedTuple):
    scale: TimeScale
    bars: tuple[Bar, ...]


def lease_picture(job_id: int, leases: Sequence[LeaseRecord], now: datetime) -> LeasePicture | None:
    """The leases of one job, one below the other; None if there is nothing to see."""
    if not leases:
        return None
    since, until = leases[0].leased_at, max(lease.ended_at or now for lease in leases)
    scale = TimeScale(since, until + max((until - since) / 50, timedelta(milliseconds=1)))
    bars = (_bar(_span(job_id, lease), scale)._replace(row=row) for row, lease in enumerate(leases))
    return LeasePicture(scale, tuple(bars))


def _span(job_id: int, lease: LeaseRecord) -> AttemptSpan:
    return AttemptSpan(
        job_id,
        None,
        None,
        lease.owner or "",
        lease.attempt,
        lease.token,
        lease.leased_at,
        lease.started_at,
        lease.ended_at,
        "running" if lease.outcome == HELD else lease.outcome,
    )
