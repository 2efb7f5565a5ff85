"""Limits and weights: set by operators, enforced by the claim."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from freehold.errors import Refused
from freehold.model.audit import AuditKind, Author
from freehold.model.explain import LimitUse, PauseInfo, QueueRules, TenantUse
from freehold.model.limit import ALL_QUEUES, ALL_TENANTS, Limit, Rate
from freehold.model.timestamps import maybe_time, time_of
from freehold.store.rows import json_text
from freehold.store.statements import Row, Statement, Verb, read, together
from freehold.store.types import NamedLimit
from freehold.store.verbs import audit
from freehold.store.verbs.lanes import then_admit

_KEYS_AT_ONCE = 100


def set_queue_limit(name: str, limit: Limit, author: Author | None = None) -> Verb[None]:
    """Of a queue, or of all together (``*``). Live leases stay."""
    setting = Statement("set_queue_limit", {"queue": name, **_columns(limit)})
    record = audit.of_setting(author, "set_limit", AuditKind.QUEUE, name, _columns(limit))
    if name != ALL_QUEUES or limit.max_leases is None:
        yield from together(*record, setting)
        return
    _, has_tenants = (yield from read("shared_limit_conflict"))[0]
    if has_tenants:
        raise Refused(
            "with SQLite a tenant is a file of its own, and no limit holds over several: limit "
            "each tenant (--tenant), or use PostgreSQL"
        )
    yield from together(*record, Statement("reset_shared_counts", {}), setting)


def set_weight(name: str, weight: float, author: Author | None = None) -> Verb[None]:
    """The queue's share of the workers beside others."""
    record = audit.of_setting(author, "set_weight", AuditKind.QUEUE, name, {"weight": weight})
    yield from together(*record, Statement("set_weight", {"queue": name, "weight": weight}))


def set_key_limit(key: str, limit: Limit, author: Author | None = None) -> Verb[None]:
    """Of a limit_key, or of a class of them (``github:*``); NO_LIMIT removes the rule."""
    name = "set_key_limit" if limit else "drop_key_limit"
    record = audit.of_setting(author, "set_limit", AuditKind.LIMIT, key, _columns(limit))
    yield from together(*record, Statement(name, {"key": key, **_columns(limit)}))


def declare_limits(limits: Mapping[str, Limit]) -> Verb[None]:
    """The limits that tasks declare, by key. One is set if it was not declared before, or declared
    otherwise; so an operator's change stays until the code changes."""
    if not limits:
        return
    rows = yield from read("key_limits")
    declared = {key: text for key, *_, text in rows}
    for key, limit in limits.items():
        text = json_text(limit)
        declaring = Statement("declare_key_limit", {"key": key, "declared": text})
        setting = Statement("set_key_limit", {"key": key, **_columns(limit)})
        if key in declared and declared[key] is None:
            yield from together(declaring)  # the operator's limit was there first
        elif declared.get(key) != text:
            yield from together(setting, declaring)


def _columns(limit: Limit) -> dict[str, Any]:
    rate = limit.rate
    return {
        "max_leases": limit.max_leases,
        "rate_starts": rate.starts if rate else None,
        "rate_seconds": rate.seconds if rate else None,
    }


def limit_of(max_leases: int | None, starts: int | None, seconds: float | None) -> Limit:
    rate = None if starts is None or seconds is None else Rate(starts, seconds)
    return Limit(max_leases, rate)


def queue_limits() -> Verb[list[NamedLimit]]:
    """Every limit of queues, that of all together among them."""
    rows = yield from read("queue_limits")
    return [_rule(row) for row in rows]


def key_limits() -> Verb[list[NamedLimit]]:
    """Every rule for limit_keys."""
    rows = yield from read("key_limits")
    return [_rule(row) for row in rows]


def _rule(row: Row) -> NamedLimit:
    name, max_leases, starts, seconds, *_ = row
    return NamedLimit(name, limit_of(max_leases, starts, seconds))


def key_use(key: str) -> Verb[LimitUse]:
    """A limit_key: its limit, and how much of it is used."""
    ((*limit, leased, holder, started),) = yield from read("key_use", key=key)
    use = LimitUse(limit_of(*limit), leased, started, holder)
    return (yield from _with_next_start(f"k/{key}", use))


def _with_next_start(name: str, use: LimitUse) -> Verb[LimitUse]:
    rate = use.limit.rate
    if rate is None or use.started < rate.starts:
        return use
    ((seconds,),) = yield from read("next_start", of=name, starts=rate.starts, seconds=rate.seconds)
    # None: the last start has left the window since the read before.
    return msgspec.structs.replace(use, next_start_seconds=max(0.0, float(seconds or 0.0)))


def queue_use(name: str) -> Verb[LimitUse]:
    """The limit of a queue, or of all queues together (``*``), and its use."""
    rules = yield from queue_rules(name)
    return next((each.use for each in rules if each.name == name), LimitUse())


def queue_rules(queue: str) -> Verb[list[QueueRules]]:
    """Pause and limits of a queue, and of all queues together."""
    rows = yield from read("queue_rules", queue=queue)
    ((now,),) = yield from read("now")
    shared = yield from shared_use()
    found = []
    for row in rows:
        rule = _queue_rule(row, time_of(now))
        use = yield from _with_next_start(f"q/{rule.name}", rule.use)
        found.append(msgspec.structs.replace(rule, use=use))
    return [*found, QueueRules(ALL_TENANTS, use=shared)] if shared is not None else found


def shared_use() -> Verb[LimitUse | None]:
    """The limit over all tenants of this database, and its use by each. None: there is no such
    limit, or no tenant, and it is a limit like any other."""
    rows = yield from read("shared_leases")
    if not rows:
        return None
    max_leases, is_control, *_ = rows[0]  # the same in all
    tenants = tuple(TenantUse(name, live) for *_, name, live in rows if live)
    if is_control and not any(each.tenant for each in tenants):
        return None
    return LimitUse(Limit(max_leases), sum(each.leased for each in tenants), tenants=tenants)


def _queue_rule(row: Row, now: datetime) -> QueueRules:
    name, at, by, reason, until, *limit, leased, started, holder = row
    until = maybe_time(until)
    is_paused = at is not None and (until is None or until > now)
    pause = PauseInfo(time_of(at), by, reason, until) if is_paused else None
    return QueueRules(name, pause, LimitUse(limit_of(*limit), leased, started, holder))


def admit_limited(limit: int) -> Verb[int]:
    """Make jobs ready that waited for a limit_key which has room now. Returns how many. A safety
    net: every verb that frees room does the same. Key by key, so that no lock is held for long."""
    total, after = 0, ""
    while True:
        rows = yield from read("waiting_keys", after=after, limit=min(limit, _KEYS_AT_ONCE))
        keys = [key for (key,) in rows]
        if not keys:
            return total
        answers = yield from together(*then_admit(keys))
        total += len(answers[-1])
        if len(keys) < _KEYS_AT_ONCE or total >= limit:
            return total
        after = keys[-1]
