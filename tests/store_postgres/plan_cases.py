"""Every statement whose cost must not grow with the tables, and how much it may read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg import Connection

from freehold.model.state import Stage
from freehold.model.waiting import REPLACEABLE
from freehold.store.stage_sql import STAGE_NAMES, stage_byte
from freehold.store.statements import Statement
from freehold.store.verbs import audit
from freehold.store.verbs.queries import PAGE_WINDOW
from tests.store_postgres.filling import FINISHED, LEASED, OWNER, QUEUES, SCHEDULED

#: How much a statement may read for each row that it returns or changes: the row itself, once
#: more to write it, the rows of its lane, and entries of versions that are not yet vacuumed.
ROWS_PER_RESULT = 8
BUFFERS_PER_RESULT = 40
#: Days of history and of events: a read by id probes each of them.
DAYS = 40
BATCH = 100
NEWEST = 2**63 - 1
#: Leases of one owner: see `filling`.
OWNED = LEASED // 8
#: Jobs that wait for a person: page_attention reads all of them to find the paused ones.
ATTENTION = 1_100
#: Statements that read days of history, which come and go, and their plans with them.
READING_DAYS = {
    "apply_retention_rule",
    "count_bulk_step",
    "mark_resolved",
    "recheck_bulk_step",
    "audit_jobs",
    "delete",
    "drop_old_steps",
    "drop_steps_from",
    "page_history",
    "page_unsuccessful",
    "read_ends",
    "recent_attempts",
    "recent_failures",
    "read_events",
    "read_jobs",
    "requeue_finished",
}


@dataclass(frozen=True)
class Case:
    """``results``: how many rows it returns or changes. ``besides``: how many it reads once."""

    name: str
    statement: Statement
    results: int = 1
    besides: int = 10

    @property
    def rows_allowed(self) -> int:
        return ROWS_PER_RESULT * self.results + self.besides

    @property
    def buffers_allowed(self) -> int:
        return BUFFERS_PER_RESULT * self.results + 10 * self.besides


@dataclass(frozen=True)
class Found:
    """Real ids, tokens and keys of the filled database."""

    leases: list[tuple[int, int]]
    live: list[int]
    keys: list[str]
    leased_middle: int
    attention_middle: int


def look(connection: Connection[Any]) -> Found:
    def values(text: str) -> list[Any]:
        return connection.execute(text.encode()).fetchall()

    middle = "select coalesce(avg(id), 0)::bigint from freehold.job where stage "
    leases = (
        f"select id, lease_token from freehold.job where stage = {STAGE_NAMES['leased']} "
        f"and lease_owner = '{OWNER}' and lease_expires_at > now() order by id limit {BATCH}"
    )
    waiting = ("pending", "paused", "paused_follower", "failed")
    attention = ", ".join(STAGE_NAMES[stage] for stage in waiting)
    live = (
        f"select id from freehold.job where stage = {STAGE_NAMES['ready']} "
        f"order by id desc limit {BATCH}"
    )
    keys = f"select unique_key from freehold.job where unique_key <> '' limit {BATCH}"
    return Found(
        leases=values(leases),
        live=[row[0] for row in values(live)],
        keys=[row[0] for row in values(keys)],
        leased_middle=values(f"{middle} = {STAGE_NAMES['leased']}")[0][0],
        attention_middle=values(f"{middle} in ({attention})")[0][0],
    )


def cases(found: Found) -> dict[str, Case]:
    """By name; the names are the same for an empty and a full database."""
    every = (
        *_claims(),
        *_owner(found),
        *_upkeep(),
        *_schedules(),
        *_live_reads(found),
        *_keys(found),
        *_history(found),
    )
    return {case.name: case for case in every}


def _claims() -> Iterator[Case]:
    for count in (1, 10, BATCH):
        yield Case(f"claim {count}", _claim(count), count)
        yield Case(f"claim_plain {count}", _claim_plain(count), count)
    known = [f"t{i}" for i in range(50)]
    yield Case("claim of known tasks", _claim(10, queue="q5", tasks=known), 10)
    yield Case("claim_plain of known tasks", _claim_plain(10, queue="q5", tasks=known), 10)
    yield Case("claim in an empty queue", _claim(10, queue="nothing here"))
    yield Case(
        "claim beyond the last", _claim(10, rank=-2, after=FINISHED + SCHEDULED + 50_000), 10
    )
    yield Case("claim of a limited queue", _claim(10, queue="limited"))
    # Counts the leases of the queue, and of each key that it meets.
    limited = _claim(10, queue="limited", locked=True, keys=["full", "key:1", "key:2"])
    yield Case("claim under limits", limited, 10, 100)
    keys = [{"limit_key": key} for key in ("roomy", "full", "key:7")]
    yield Case("admit", Statement("admit", {}, keys), 7, 30)
    yield Case("waiting_keys", Statement("waiting_keys", {"after": "", "limit": 100}), 2)
    # For `explain`, which may read all leased jobs.
    yield Case("key_use", Statement("key_use", {"key": "roomy"}), 1, 2 * LEASED)
    yield Case("queue_rules", Statement("queue_rules", {"queue": "limited"}), 1, 2 * LEASED)
    lanes = {"after": "", "limit": BATCH, "bound": BATCH}
    yield Case("lanes", Statement("lanes", lanes), BATCH, 10 * BATCH)
    yield Case("lane", Statement("lane", {"target": "lane7", "bound": BATCH}), 10)
    yield Case(
        "stalled_lanes",
        Statement("stalled_lanes", {"after": "", "limit": BATCH}),
        BATCH,
        10 * BATCH,
    )
    yield Case("wake_lane", Statement("wake_lane", {"target": "lane7"}))


def _claim(count: int, queue: str = "default", **more: Any) -> Statement:
    usual = {
        "ahead": 0,
        "rank": -32768,
        "after": 0,
        "locked": False,
        "shared": False,
        "keys": [],
        "tasks": None,
    }
    return Statement(
        "claim",
        {
            "queue": queue,
            "wanted": count,
            "examined": count,
            "owner": OWNER,
            "lease_seconds": 30.0,
            **usual,
            **more,
        },
    )


def _claim_plain(count: int, queue: str = "default", **more: Any) -> Statement:
    usual = {"rank": -32768, "after": 0, "tasks": None, "owner": OWNER, "lease_seconds": 30.0}
    return Statement("claim_plain", {"queue": queue, "wanted": count, **usual, **more})


def _owner(found: Found) -> Iterator[Case]:
    leases = [{"id": i, "token": t, "result": None, "ran_seconds": 0.1} for i, t in found.leases]
    owner = {"owner": OWNER}
    yield Case("renew", Statement("renew", {**owner, "lease_seconds": 30.0}, leases), BATCH)
    yield Case("mark_running", Statement("mark_running", owner, leases), BATCH)
    step = {"name": "s", "number": 1, "kind": "result", "seconds": None, "value": "1"}
    steps = [{**lease, **step, "hidden": False} for lease in leases]
    yield Case("put_steps", Statement("put_steps", owner, steps), BATCH)
    yield Case("read_steps", Statement("read_steps", {"id": 1}))
    seen = {"id": 1, "seen_stage": None, "seen_state": "failed", "step": "s"}
    yield Case("drop_steps_from", Statement("drop_steps_from", {}, [seen]), 1, DAYS)
    names = [{"name": f"s{i}"} for i in range(BATCH)]
    yield Case("undelivered_signals", Statement("undelivered_signals", {"limit": BATCH}))
    yield Case("signals", Statement("signals", {"after": "", "limit": BATCH}), BATCH)
    yield Case("deliver_signals", Statement("deliver_signals", {}, names), BATCH)
    yield Case("succeed", Statement("succeed", owner, leases), BATCH)
    yield Case(
        "transition",
        Statement("transition", {"by": None}, [_lost(*x) for x in found.leases]),
        BATCH,
    )
    yield Case("succeed_in_flow", Statement("succeed_in_flow", owner, leases), BATCH)
    lost = [_lost(*x) for x in found.leases]
    yield Case("transition_in_flow", Statement("transition_in_flow", {"by": None}, lost), BATCH)
    yield Case("stop_requests", Statement("stop_requests", owner), 10)
    lanes = [{"target": f"lane{i}"} for i in range(1_500, 1_500 + BATCH)]
    yield Case("promote", Statement("promote", {}, lanes), BATCH)
    job_id, token = found.leases[0] if found.leases else (0, 0)
    request = {"id": job_id, "token": token, "stop_request": "cancel", "event": "cancel_requested"}
    author = {"by": "ann", "reason": None}
    yield Case("request_stop", Statement("request_stop", author, [request]))


def _lost(job_id: int, token: int) -> dict[str, Any]:
    return {
        "id": job_id,
        "seen_stage": stage_byte(Stage.LEASED),
        "token": token,
        "owner": OWNER,
        "expired": False,
        "stop_request": None,
        "leaves": True,
        "state": "failed",
        "stage_due": None,
        "stage_later": None,
        "delay_seconds": None,
        "keep_run_at": False,
        "fresh_attempts": False,
        "refund": 0,
        "lost_attempts": 1,
        "reason": "lost",
        "error": None,
        "result": None,
        "ran_seconds": None,
        "event": "failed",
    }


def _upkeep() -> Iterator[Case]:
    yield Case("expired", Statement("expired", {"limit": BATCH}), BATCH)
    # Of a dead owner, once: it may read all leases to find its own.
    yield Case("expire_leases", Statement("expire_leases", {"owner": OWNER}), OWNED, 2 * LEASED)
    yield Case("make_ready", Statement("make_ready", {"limit": BATCH}), BATCH)
    yield Case("late_jobs", Statement("late_jobs", {"limit": BATCH}), BATCH)
    yield Case("sweep_check", Statement("sweep_check", {"tasks": ["t1", "t2"]}), 1, 3 * QUEUES)
    yield Case("unpark", Statement("unpark", {"tasks": ["t1", "t2"], "limit": BATCH}), 8)
    misfits = {"tasks": ["t1", "t2"], "after": 0, "limit": BATCH}
    yield Case("misfits", Statement("misfits", misfits), 8)
    yield Case("unpark_misfits", Statement("unpark_misfits", {}, [{"id": 1}, {"id": 2}]), 2)
    # Counted inside functions, whose plans are not shown: the buffers show how far they read.
    yield Case("depth", Statement("depth", {"queue": "default", "bound": BATCH}), 1, 15)
    yield Case("counts", Statement("counts", {"bound": BATCH}), 1, 10 * 20)
    overdue = {"seconds": 60.0, "bound": BATCH}
    yield Case("overdue_leases", Statement("overdue_leases", overdue), 1, LEASED)
    blocked = {"window": PAGE_WINDOW, "limit": BATCH}
    yield Case("blocked_lanes", Statement("blocked_lanes", blocked), BATCH, ATTENTION)
    failures = {"limit": PAGE_WINDOW, "live": BATCH}
    yield Case(
        "recent_failures",
        Statement("recent_failures", failures),
        BATCH,
        3 * PAGE_WINDOW + 10 * DAYS * BATCH,
    )
    around = {"target": "lane7", "around": 1, "limit": BATCH}
    yield Case("lane_around", Statement("lane_around", around), 10)
    yield Case(
        "recent_attempts",
        Statement(
            "recent_attempts",
            {
                "since": datetime.now(UTC) - timedelta(hours=1),
                "until": datetime.now(UTC),
                "limit": 50,
                "window": PAGE_WINDOW,
            },
        ),
        50,
        6 * PAGE_WINDOW + 2 * LEASED,
    )
    yield Case("has_live_jobs", Statement("has_live_jobs", {}))
    yield Case("queues", Statement("queues", {"bound": BATCH}), QUEUES, 2 * LEASED)
    yield Case("queue", Statement("queue", {"queue": "default", "bound": BATCH}), 1, 2 * LEASED)
    yield Case(
        "ready_queues", Statement("ready_queues", {"after": "", "limit": BATCH}), QUEUES, 2 * QUEUES
    )
    yield Case("pause_of_all", Statement("pause_of_all", {}))


def _schedules() -> Iterator[Case]:
    yield Case("due_schedules", Statement("due_schedules", {"limit": BATCH}), BATCH)
    yield Case("schedules", Statement("schedules", {"after": "s5", "limit": BATCH}), BATCH)
    yield Case("lane_jobs", Statement("lane_jobs", {"target": "lane7", "limit": BATCH}), 10)
    moved = {
        "seen_at": "2026-01-01T00:00:00Z",
        "seen_edit": 0,
        "next_at": None,
        "counted_to": None,
        "missed": 0,
        "problem": None,
        "first_tick": None,
        "last_tick": None,
        "ticks": [],
    }
    rows = [{**moved, "name": f"s{number}", "key": f"schedule:s{number}"} for number in range(9)]
    yield Case("fire", Statement("fire", {}, rows), 9, 20)


def _live_reads(found: Found) -> Iterator[Case]:
    middle = found.live[-1] if found.live else 0
    live = ("queued", "assigned", "running", "paused", "failed", "pending")
    for where, before in (("first", NEWEST), ("deep", middle)):
        yield Case(f"page_live {where}", _page("page_live", before, *live), 50)
    for where, before in (("first", NEWEST), ("deep", found.leased_middle)):
        page = _page("page_leased", before, "assigned", "running")
        yield Case(f"page_leased {where}", page, 50, 2 * LEASED)
    for where, before in (("first", NEWEST), ("deep", found.attention_middle)):
        page = _page("page_attention", before, "paused")
        yield Case(f"page_attention {where}", page, 50, ATTENTION)
    ahead = {"queue": "default", "priority": 0, "id": middle, "bound": BATCH}
    yield Case("jobs_ahead", Statement("jobs_ahead", ahead), BATCH)


def _keys(found: Found) -> Iterator[Case]:
    request = [
        {"position": position, "unique_key": key, "idempotency_key": f"key{position + 1}"}
        for position, key in enumerate(found.keys)
    ]
    yield Case("find_holders", Statement("find_holders", {}, request), BATCH)
    new = [_new(position, f"new {position}") for position in range(BATCH)]
    shapes = [{**row, "number": number} for number, row in enumerate(new)]
    calls = {"calls": ["{}"] * BATCH, "numbers": list(range(BATCH))}
    yield Case("enqueue", Statement("enqueue", calls, shapes), BATCH)
    yield Case("enqueue_one", Statement("enqueue_one", new[0]))
    yield Case("enqueue_keyed", Statement("enqueue_keyed", {}, new), BATCH)
    # Half of the keys are held by waiting jobs.
    new = [{**row, "waiting_key": f"unique/t/{2 * n}"} for n, row in enumerate(new)]
    replaces = {f"replaces_{name}": True for name in REPLACEABLE} | {"at_most_seconds": 60.0}
    yield Case("enqueue_waiting", Statement("enqueue_waiting", {"throttled": False}, new), BATCH)
    replacing = Statement("enqueue_replacing", {**replaces, "throttled": True}, new)
    yield Case("enqueue_replacing", replacing, BATCH)
    yield Case("find_waiting", Statement("find_waiting", {}, new), BATCH)
    windows = [{"key": row["waiting_key"], "seconds": 60.0} for row in new]
    yield Case("lock_throttles", Statement("lock_throttles", {}, windows), BATCH)
    yield Case("advance_throttles", Statement("advance_throttles", {}, windows), BATCH)


def _new(position: int, key: str) -> dict[str, Any]:
    return {
        "position": position,
        "task": "t",
        "queue": "default",
        "priority": 0,
        "args": "{}",
        "max_attempts": 5,
        "pending": False,
        "run_at": None,
        "delay_seconds": None,
        "target": f"lane{position}",
        "limit_key": None,
        "unique_key": key,
        "timeout_seconds": None,
        "tags": None,
        "policy": None,
        "meta": None,
        "idempotency_key": key,
        "idempotency_seconds": 60.0,
    }


def _history(found: Found) -> Iterator[Case]:
    for where, before in (("first", NEWEST), ("deep", FINISHED // 2)):
        page = _page("page_history", before, "succeeded", "failed", "canceled")
        yield Case(f"page_history {where}", page, 50, DAYS)
        page = _page("page_unsuccessful", before, "failed")
        yield Case(f"page_unsuccessful {where}", page, 50, DAYS)
    yield from _filtered()
    ids = [*found.live[:5], 5, FINISHED // 2, FINISHED]
    yield Case("read_jobs", Statement("read_jobs", {}, _ids(ids)), len(ids), DAYS)
    yield Case("read_ends", Statement("read_ends", {}, _ids(ids)), len(ids), DAYS)
    yield Case(
        "read_events", Statement("read_events", {"id": FINISHED // 2, "newest": 1001}), 1, DAYS
    )
    after = {"after": 0, "limit": BATCH}
    yield Case("events_after", Statement("events_after", after), BATCH, 2 * DAYS)
    yield Case("newest_event", Statement("newest_event", {}), 1, 2 * DAYS)
    seen = [
        {"id": job_id, "seen_stage": None if job_id <= FINISHED else "r", "seen_state": "succeeded"}
        for job_id in ids
    ]
    yield Case("delete", Statement("delete", {}, seen), len(ids), 2 * DAYS)
    author = {"by": "ann", "reason": None}
    finished = [
        {
            "id": job_id,
            "seen_state": "failed",
            "stage": stage_byte(Stage.READY),
            "event": "resumed",
            "fresh_attempts": True,
        }
        for job_id in range(FINISHED - 100 * BATCH, FINISHED, 100)
    ]
    requeue = Statement("requeue_finished", author, finished)
    yield Case("requeue_finished", requeue, len(finished), BATCH * DAYS)
    resolve = Statement("mark_resolved", author, finished)
    yield Case("mark_resolved", resolve, len(finished), BATCH * DAYS)
    yield from _bulk(found)
    yield from _audit(ids)
    day = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=9)
    scan = {"day": day, "next_day": day + timedelta(days=1), "after": 0, "window": BATCH}
    rule = {"kind": "queue", "name": "q5"}
    expire = Statement("apply_retention_rule", {**rule, **scan})
    # Of the window's jobs one in twenty is of the queue; its events are probed in every day.
    yield Case("apply_retention_rule", expire, 5, BATCH + 10 * DAYS)
    yield Case(
        "apply_retention", Statement("apply_retention", {"history_days": 30.0, "limit": BATCH})
    )
    yield from _old_steps(day)


def _old_steps(day: datetime) -> Iterator[Case]:
    """A job that is not live is looked for in every day."""
    early = datetime(2000, 1, 1, tzinfo=UTC)
    scan = {"day": day, "scanned_to": early, "job_id": 0, "window": BATCH}
    for where, at in (("first", early), ("later", day - timedelta(days=30))):
        scan_steps = Statement("drop_old_steps", {**scan, "at": at})
        yield Case(f"drop_old_steps {where}", scan_steps, BATCH, BATCH * DAYS)
    yield Case("step_scan", Statement("step_scan", {}))
    due = Statement("retention_is_due", {"history_days": 30.0})
    yield Case("retention_is_due", due, 1, 10 * DAYS)  # of the catalog


def _bulk(found: Found) -> Iterator[Case]:
    step = {"operation": 1, "number": 1}
    counts: dict[str, Any] = {"by": "ann (bulk 1)", "event": "retried_by_hand", "request_event": ""}
    counts |= {"already": 0, "changed": 0, "refused": None, "ids": found.live}
    yield Case("next_bulk_chunk", Statement("next_bulk_chunk", {"operation": None}))
    yield Case("begin_bulk_step", Statement("begin_bulk_step", step))
    yield Case("count_bulk_step", Statement("count_bulk_step", {**step, **counts}), BATCH, DAYS)
    recheck = {"ids": found.live, "by": "ann (bulk 1)", "changed": 0, "states": ["queued"]}
    recheck_case = Statement("recheck_bulk_step", {**step, **recheck})
    yield Case("recheck_bulk_step", recheck_case, 1, DAYS)
    yield Case("end_bulk", Statement("end_bulk", step))
    amended = {
        "priority": 5,
        "queue": None,
        "max_attempts": None,
        "run_at": None,
        "by": "ann",
        "reason": None,
    }
    rows = [
        {"id": i, "seen_stage": "r", "state": "queued", "stage_due": "r", "stage_later": "s"}
        for i in found.live
    ]
    yield Case("amend", Statement("amend", amended, rows), BATCH)


def _audit(ids: list[int]) -> Iterator[Case]:
    author = {"by": "ann", "via": "cli", "reason": None, "verb": "retry"}
    seen = {"seen_state": "failed", "token": None, "stop_request": None}
    values = {"before": "{}", "after": "{}"}
    rows = [
        {"id": job_id, "seen_stage": None if job_id <= FINISHED else "r", **seen, **values}
        for job_id in ids
    ]
    yield Case("audit_jobs", Statement("audit_jobs", author, rows), len(ids), DAYS)
    setting = {"kind": "queue", "subject": "q5", "after": "{}", "only_if_paused": False}
    yield Case("audit_setting", Statement("audit_setting", {**author, **setting}))
    page: dict[str, Any] = {"by": None, "verb": None, "kind": None, "subject": None}
    page |= {"before": NEWEST, "limit": 50, "window": audit.WINDOW}
    yield Case("audit_page", Statement("audit_page", page), 50)
    one = page | {"kind": "job", "subject": "7"}
    yield Case("audit_of_subject", Statement("audit_of_subject", one), 50)
    old = {"audit_days": 400.0, "limit": BATCH}
    yield Case("apply_audit_retention", Statement("apply_audit_retention", old), BATCH)


def _filtered() -> Iterator[Case]:
    """Filters without an index read one window. A range of days reads those days only (two or three
    of them can be cheaper to read in whole), and the end of a range is found by probes of the
    indexes of ids."""
    nothing = {
        "queue": "nothing here",
        "task": "nothing here",
        "target": "nothing here",
        "tag": "nothing",
        "meta": '{"nothing": 1}',
        "worker": "nobody",
        "created_until": datetime(2000, 1, 1, tzinfo=UTC),
    }
    for field, value in nothing.items():
        for name in ("page_history", "page_live"):
            page = _page(name, NEWEST, "succeeded", "queued", **{field: value})
            yield Case(f"{name} of no {field}", page, 50, 3 * PAGE_WINDOW)
    for name in ("page_unsuccessful", "page_attention"):
        page = _page(name, NEWEST, "failed", error="nothing")
        yield Case(f"{name} of no error", page, 50, 3 * PAGE_WINDOW + 10 * DAYS * 200)
    day = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for name, rare in (("page_history", {}), ("page_unsuccessful", {"task": "nothing here"})):
        since = day - timedelta(days=20)
        page = _page(name, NEWEST, "failed", first_day=since, finished_since=since, **rare)
        yield Case(f"{name} of some days", page, 50, 3 * PAGE_WINDOW)
    for where, job_id in (("newest", NEWEST), ("middle", FINISHED // 2)):
        probe = Statement("job_at_or_below", {"id": job_id})
        yield Case(f"job_at_or_below {where}", probe, 1, 2 * DAYS)


def _ids(ids: list[int]) -> list[dict[str, int]]:
    return [{"id": job_id} for job_id in ids]


_ANYTHING: dict[str, Any] = dict.fromkeys(
    (
        *("queue", "task", "target", "tag", "meta", "error", "worker"),
        *("created_since", "created_until", "finished_since", "finished_until"),
        "first_day",
    )
)


def _page(name: str, before: int, *states: str, **filter: Any) -> Statement:
    page = {"states": list(states), "before": before, "limit": 50, "window": PAGE_WINDOW}
    return Statement(name, {**_ANYTHING, **page, **filter})
