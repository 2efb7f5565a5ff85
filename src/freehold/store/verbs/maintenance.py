"""Maintenance: sweeping and retention, bounded and safe to run in every worker at once."""

from __future__ import annotations

from collections.abc import Sequence

from freehold.store.statements import Verb, read, write
from freehold.store.types import Misfit, SweepCheck
from freehold.store.verbs import retention


def make_ready(limit: int) -> Verb[int]:
    """Put due jobs into the ready set. Returns how many."""
    rows = yield from write("make_ready", limit=limit)
    return len(rows)


def sweep_check(tasks: Sequence[str]) -> Verb[SweepCheck]:
    """What there is to sweep, in one read."""
    rows = yield from read("sweep_check", tasks=sorted(set(tasks)))
    expired, limited, ended_lane_pauses, parked, misfits, *times = rows[0][:8]
    bulk, signals, flows, workers = rows[0][8:]
    due, schedule, late = map(_seconds, times)
    return SweepCheck(
        expired=bool(expired),
        limited=bool(limited),
        ended_lane_pauses=bool(ended_lane_pauses),
        parked=bool(parked),
        misfits=bool(misfits),
        due_seconds=due,
        schedule_seconds=schedule,
        late_seconds=late,
        bulk=bool(bulk),
        signals=bool(signals),
        flows=bool(flows),
        workers=workers,
    )


def _seconds(until: float | None) -> float | None:
    return None if until is None else max(0.0, float(until))


def unpark(tasks: Sequence[str], limit: int) -> Verb[int]:
    """Make parked jobs of these tasks ready again, except misfits. Returns how many."""
    rows = yield from write("unpark", tasks=sorted(set(tasks)), limit=limit)
    return len(rows)


def retention_is_due(history_days: float) -> Verb[bool]:
    """Whether `apply_retention` has something to do. One read, for workers that live less than the
    hour between two retentions."""
    ((is_due,),) = yield from read("retention_is_due", history_days=history_days)
    return bool(is_due)


def misfits(tasks: Sequence[str], after: int, limit: int) -> Verb[list[Misfit]]:
    """Parked jobs of these tasks whose arguments did not fit, with an id above ``after``, in the
    order of their ids."""
    rows = yield from read("misfits", tasks=sorted(set(tasks)), after=after, limit=limit)
    return [Misfit(job_id, task, args, bool(is_over)) for job_id, task, args, is_over in rows]


def unpark_misfits(ids: Sequence[int]) -> Verb[int]:
    """Make these misfits ready again. The wait of one that is parked again is counted from the
    first time. Returns how many."""
    rows = yield from write("unpark_misfits", [{"id": job_id} for job_id in sorted(set(ids))])
    return len(rows)


def apply_retention(history_days: float, limit: int) -> Verb[int]:
    """Delete finished jobs, closed flows, steps, events and keys older than this, and schedules
    that their app has not declared for a week; prepares new partitions. Returns how many partitions
    (PostgreSQL) or rows (SQLite) went, and steps of rules were taken. Repeat while it is > 0."""
    days = yield from write("rotate_partitions", history_days=history_days)
    rows = yield from write("apply_retention", history_days=history_days, limit=limit)
    has_steps = yield from retention.drop_old_steps(history_days, limit)
    flows = yield from write("drop_old_flows", history_days=history_days, limit=limit)
    has_scanned = yield from retention.apply_rules(history_days)
    return sum(int(removed) for (removed,) in days + rows + flows) + has_steps + has_scanned
