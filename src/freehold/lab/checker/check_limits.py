"""S0.10, P8: never more live leases, and never more starts in an interval, than a limit allows.

A lease that its owner ended was live until its end. A recovered lease was live for at least one
lease duration; its last renewal is not recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from freehold.lab.checker.indexed_history import IndexedHistory
from freehold.lab.checker.job_intervals import LeaseInterval
from freehold.lab.checker.violation import Violation
from freehold.model.history import EventKind
from freehold.model.limit import ALL_QUEUES, Limit

_MICROS = 1_000_000
_K = EventKind
#: Events that a recovery may have written in place of the owner.
_MAYBE_RECOVERED = frozenset({_K.LEASE_LOST, _K.FAILED, _K.PAUSED, _K.CANCELED})


def limits(history: IndexedHistory) -> Iterator[Violation]:
    for name, limit, leases in _limited(history):
        if limit.max_leases is not None:
            yield from _at_once(name, limit.max_leases, leases, history.evidence.lease_micros)
        if limit.rate is not None:
            yield from _starts(name, limit.rate.starts, limit.rate.seconds, leases)


def limit_for_key(limits_by_key: Mapping[str, Limit], key: str) -> Limit | None:
    """The limit of the key itself, else of its class."""
    return limits_by_key.get(key, limits_by_key.get(f"{key.partition(':')[0]}:*"))


def _limited(history: IndexedHistory) -> Iterator[tuple[str, Limit, list[LeaseInterval]]]:
    limits_by_key, queue_rules = history.evidence.limits, history.evidence.queue_limits
    jobs = history.jobs.values()
    for key in sorted(
        {intervals.job.limit_key for intervals in jobs if intervals.job.limit_key is not None}
    ):
        if (limit := limit_for_key(limits_by_key, key)) is not None:
            leases = [
                s for intervals in jobs if intervals.job.limit_key == key for s in intervals.leases
            ]
            yield f"key {key}", limit, leases
    for queue, limit in queue_rules.items():
        leases = [
            lease
            for intervals in jobs
            if queue in (intervals.job.queue, ALL_QUEUES)
            for lease in intervals.leases
        ]
        yield f"queue {queue}", limit, leases


def _at_once(
    name: str, maximum: int, leases: Iterable[LeaseInterval], lease_micros: int
) -> Iterator[Violation]:
    changes = sorted(
        change
        for lease in leases
        for change in ((lease.start, 1), (_surely_live_until(lease, lease_micros), -1))
    )
    live = 0
    for at, change in changes:
        live += change
        if live > maximum:
            text = f"{live} leases of {name} were live; the limit is {maximum}"
            yield Violation("S0.10", 0, text, at)


def _surely_live_until(lease: LeaseInterval, lease_micros: int) -> int:
    if lease.kind in _MAYBE_RECOVERED:
        return min(lease.end, lease.start + lease_micros)
    return lease.end


def _starts(
    name: str, maximum: int, seconds: float, leases: Iterable[LeaseInterval]
) -> Iterator[Violation]:
    starts = sorted(lease.start for lease in leases)
    for first, last in zip(starts, starts[maximum:], strict=False):
        if last - first < seconds * _MICROS:
            text = f"{maximum + 1} leases of {name} began within {(last - first) / _MICROS:g} s"
            yield Violation("P8", 0, f"{text}; the limit is {maximum} in {seconds:g} s", last)
