"""Retention that scans: shorter retention of single queues and tasks, and steps of deleted jobs.

History is dropped by whole days, whichever jobs they have. A rule deletes its jobs earlier, row by
row: a scan visits each day once, when it is old enough for the rule, in windows of bounded size.

Steps lose their job with such a day. They are older than it, as are steps of jobs that are kept, so
a scan looks at all steps before the day, once for each day, in windows of bounded size.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from freehold.model.audit import AuditKind, Author
from freehold.model.timestamps import maybe_time, time_of
from freehold.store.statements import Statement, Verb, read, together
from freehold.store.types import RetentionKind, RetentionRule
from freehold.store.verbs import audit

#: Finished jobs that one step scans at most.
WINDOW = 1000
_DAY = timedelta(days=1)
_BEFORE_ALL = datetime(1, 1, 2, tzinfo=UTC)


def retention_rules() -> Verb[list[RetentionRule]]:
    """By kind and name."""
    rows = yield from read("retention_rules")
    return [RetentionRule(RetentionKind(kind), name, days) for kind, name, days, *_ in rows]


def set_retention(
    kind: RetentionKind, name: str, days: float | None, author: Author | None = None
) -> Verb[None]:
    """None removes the rule."""
    subject = f"{kind} {name}"
    record = audit.of_setting(author, "set", AuditKind.RETENTION, subject, {"days": days})
    rule = {"kind": kind.value, "name": name, "days": days}
    yield from together(*record, Statement("set_retention", rule))


def apply_rules(history_days: float) -> Verb[bool]:
    """Scan the next jobs of the first rule that is due. Returns whether there was one."""
    rules = yield from read("retention_rules")
    if not rules:
        return False
    now = time_of((yield from read("now"))[0][0])
    for kind, name, days, scanned_to, scanned_id in rules:
        day = maybe_time(scanned_to) or _first_day(now - timedelta(days=history_days))
        if day + _DAY > now - timedelta(days=days):
            continue
        scan = {"day": day, "next_day": day + _DAY, "after": scanned_id, "window": WINDOW}
        rule = {"kind": kind, "name": name}
        yield from together(Statement("apply_retention_rule", {**rule, **scan}))
        return True
    return False


def drop_old_steps(history_days: float, window: int) -> Verb[bool]:
    """Scan the next steps that are older than the history. Returns whether there may be more."""
    ((now, *cursor),) = yield from read("step_scan")
    day = _first_day(time_of(now) - timedelta(days=history_days))
    scanned_to, at = (maybe_time(time) or _BEFORE_ALL for time in cursor[:2])
    if scanned_to >= day:
        return False
    after = {"scanned_to": scanned_to, "at": at, "job_id": cursor[2] or 0}
    (rows,) = yield from together(
        Statement("drop_old_steps", {"day": day, "window": window, **after})
    )
    return bool(rows[0][0] == window)


def _first_day(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
