"""6. Limits and weights: set by people, kept by the claim (see `claiming`)."""

from __future__ import annotations

from datetime import datetime

from leasehold.model.explain import Door, Pause, Use
from leasehold.model.limit import Limit, Rate
from leasehold.store.contract import Rule
from leasehold.store.freeing import admitting
from leasehold.store.rows import maybe_time, time_of
from leasehold.store.steps import Row, Statement, Steps, read, together, write

_KEYS_AT_ONCE = 100


def set_queue_limit(name: str, limit: Limit) -> Steps[None]:
    yield from together(Statement("set_queue_limit", {"queue": name, **_columns(limit)}))


def set_weight(name: str, weight: float) -> Steps[None]:
    yield from write("set_weight", queue=name, weight=weight)


def set_key_limit(key: str, limit: Limit) -> Steps[None]:
    name = "set_key_limit" if limit else "drop_key_limit"
    yield from together(Statement(name, {"key": key, **_columns(limit)}))


def _columns(limit: Limit) -> dict[str, float | None]:
    rate = limit.rate
    return {
        "max_leases": limit.max_leases,
        "rate_starts": rate.starts if rate else None,
        "rate_seconds": rate.seconds if rate else None,
    }


def limit_of(max_leases: int | None, starts: int | None, seconds: float | None) -> Limit:
    rate = None if starts is None or seconds is None else Rate(starts, seconds)
    return Limit(max_leases, rate)


def queue_limits() -> Steps[list[Rule]]:
    rows = yield from read("queue_limits")
    return [_rule(row) for row in rows]


def key_limits() -> Steps[list[Rule]]:
    rows = yield from read("key_limits")
    return [_rule(row) for row in rows]


def _rule(row: Row) -> Rule:
    return Rule(row[0], limit_of(*row[1:]))


def key_use(key: str) -> Steps[Use]:
    rows = yield from read("key_use", key=key)
    max_leases, starts, seconds, leased, holder, started = rows[0]
    return Use(limit_of(max_leases, starts, seconds), leased, started, holder)


def doors(queue: str) -> Steps[list[Door]]:
    rows = yield from read("doors", queue=queue)
    now = yield from read("now")
    return [_door(row, time_of(now[0][0])) for row in rows]


def _door(row: Row, now: datetime) -> Door:
    name, at, by, reason, until, *limit, leased, started, holder = row
    until = maybe_time(until)
    is_paused = at is not None and (until is None or until > now)
    pause = Pause(time_of(at), by, reason, until) if is_paused else None
    return Door(name, pause, Use(limit_of(*limit), leased, started, holder))


def relieve(limit: int) -> Steps[int]:
    """Key by key, so that no lock is held for long."""
    total, after = 0, ""
    while True:
        rows = yield from read("waiting_keys", after=after, limit=min(limit, _KEYS_AT_ONCE))
        keys = [row[0] for row in rows]
        if not keys:
            return total
        answers = yield from together(*admitting(keys))
        total += len(answers[-1])
        if len(keys) < _KEYS_AT_ONCE or total >= limit:
            return total
        after = keys[-1]
