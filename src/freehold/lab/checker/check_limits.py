"""S0.10, P8: never more live leases, and never more starts in a time, than a limit allows.

A lease that its owner ended was live to its end. One that was recovered was live as long as a
lease is at least; how long it was renewed, nobody tells afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from freehold.lab.checker.indexed_history import IndexedHistory
from freehold.lab.checker.job_intervals import Interval
from freehold.lab.checker.violation import Violation
from freehold.model.history import EventKind
from freehold.model.limit import ALL_QUEUES, Limit

_MICROS = 1_000_000
_K = EventKind
#: Ends that a recovery may have written, where its owner was gone.
_MAYBE_RECOVERED = frozenset({_K.LEASE_LOST, _K.FAILED, _K.PAUSED, _K.CANCELED})


def limits(case: IndexedHistory) -> Iterator[Violation]:
    for name, limit, spans in _limited(case):
        if limit.max_leases is not None:
            yield from _at_once(name, limit.max_leases, spans, case.evidence.lease_micros)
        if limit.rate is not None:
            yield from _starts(name, limit.rate.starts, limit.rate.seconds, spans)


def rule_of(rules: Mapping[str, Limit], key: str) -> Limit | None:
    """A key's own rule, else that of its class."""
    return rules.get(key, rules.get(f"{key.partition(':')[0]}:*"))


def _limited(case: IndexedHistory) -> Iterator[tuple[str, Limit, list[Interval]]]:
    rules, doors = case.evidence.limits, case.evidence.queue_limits
    lives = case.lives.values()
    for key in sorted({life.job.limit_key for life in lives if life.job.limit_key is not None}):
        if (limit := rule_of(rules, key)) is not None:
            spans = [s for life in lives if life.job.limit_key == key for s in life.spans]
            yield f"key {key}", limit, spans
    for queue, limit in doors.items():
        spans = [
            span for life in lives if queue in (life.job.queue, ALL_QUEUES) for span in life.spans
        ]
        yield f"queue {queue}", limit, spans


def _at_once(
    name: str, most: int, spans: Iterable[Interval], lease_micros: int
) -> Iterator[Violation]:
    changes = sorted(
        change
        for span in spans
        for change in ((span.start, 1), (_surely_live_until(span, lease_micros), -1))
    )
    live = 0
    for at, change in changes:
        live += change
        if live > most:
            yield Violation("S0.10", 0, f"{live} leases of {name} were live: {most} may be", at)


def _surely_live_until(span: Interval, lease_micros: int) -> int:
    if span.kind in _MAYBE_RECOVERED:
        return min(span.end, span.start + lease_micros)
    return span.end


def _starts(name: str, most: int, seconds: float, spans: Iterable[Interval]) -> Iterator[Violation]:
    starts = sorted(span.start for span in spans)
    for first, last in zip(starts, starts[most:], strict=False):
        if last - first < seconds * _MICROS:
            text = f"{most + 1} leases of {name} began within {(last - first) / _MICROS:g} s"
            yield Violation("P8", 0, f"{text}: {most} in {seconds:g} s may", last)
