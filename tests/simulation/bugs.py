"""Bugs planted on purpose, each in the SQL of the embedded store or in one function.

Each is a plausible mistake. ``seeds`` are some that find it, from
`python -m tests.simulation.search NAME`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import msgspec

from freehold import client
from freehold.client import Client, JobHandle
from freehold.errors import OutcomeUnknown, StoreError
from freehold.manager import process_slots
from freehold.manager.fleet import Fleet
from freehold.manager.worker_process import WorkerProcess
from freehold.model import operator_actions, schedule, schedule_changes
from freehold.model.history import EventKind
from freehold.model.job import Enqueued, Job
from freehold.model.operator_actions import Transition
from freehold.model.schedule import Due
from freehold.model.schedule_changes import Schedule
from freehold.model.state import HOLDS_LANE, Stage, State
from freehold.store import sqlfiles
from freehold.store.sqlite import database
from freehold.store.stage_sql import STAGE_SQL
from freehold.store.verbs import bulk
from freehold.store.verbs import enqueue as enqueue_verb
from freehold.worker.execution.runner import Runner
from freehold.worker.executor import Executor
from freehold.worker.finisher import Finisher
from freehold.worker.lease_renewer import LeaseRenewer
from freehold.worker.worker import Worker

Plant = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True)
class Bug:
    name: str
    plant: Plant
    seeds: tuple[int, ...] = ()


BUGS: dict[str, Bug] = {}


def bug(name: str, plant: Plant) -> None:
    BUGS[name] = Bug(name, plant, SEEDS.get(name, ()))


def sql(*changes: tuple[str, str, str]) -> Plant:
    """Replaces text in statements or in the schema (``schema``); the text must exist. `{ready}` and
    the like stand for stages, as in the SQL files."""

    @contextlib.contextmanager
    def plant() -> Iterator[None]:
        load, migrations = sqlfiles.load_statements, sqlfiles.load_migrations

        def loaded(package: str, values: dict[str, str]) -> dict[str, str]:
            texts = load(package, values)
            for name, old, new in changes:
                if name != "schema":
                    assert _filled(old) in texts[name], f"{name} has no {old!r}"
                    texts[name] = texts[name].replace(_filled(old), _filled(new))
            return texts

        def migrated(package: str) -> list[tuple[int, str, str]]:
            found = list(migrations(package))
            for name, old, new in changes:
                if name == "schema":
                    assert any(old in text for _, _, text in found), f"the schema has no {old!r}"
                    found = [(v, n, text.replace(old, new)) for v, n, text in found]
            return found

        statements = swapped(database, "load_statements", loaded)
        with statements, swapped(database, "load_migrations", migrated), _fresh_statements():
            yield

    return plant


def _filled(text: str) -> str:
    for name, value in STAGE_SQL.items():
        text = text.replace(f"{{{name}}}", value)
    return text


@contextlib.contextmanager
def _fresh_statements() -> Iterator[None]:
    """Clears the cache of statements, before and after."""
    database._scripts.cache_clear()
    try:
        yield
    finally:
        database._scripts.cache_clear()


def code(holder: Any, name: str, replacement: Any) -> Plant:
    """Replaces one function."""
    return lambda: swapped(holder, name, replacement)


@contextlib.contextmanager
def swapped(holder: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(holder, name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        setattr(holder, name, before)


#: Seeds that find each bug.
SEEDS: dict[str, tuple[int, ...]] = {
    "a tick is fired without its guard": (3,),
    "an edit fires backwards": (3,),
    "a schedule moves without its job": (3,),
    "a catch-up fires twice": (3,),
    "a success is accepted from any owner": (17,),
    "an ending is accepted from any owner": (46, 48, 29),
    "a valid lease is recovered": (11,),
    "leased jobs are claimed again": (2,),
    "the newest of a lane is next": (0,),
    "a paused job does not hold its lane": (0,),
    "a failed job does not hold its lane": (2,),
    "a recovery counts no attempt": (1,),
    "a snooze is charged": (0,),
    "a job is retried once too often": (0,),
    "a recovery ignores the policy": (0,),
    "a retry leaves no event": (0,),
    "the order of priorities is reversed": (1,),
    "a job is claimed before it is due": (0,),
    "jobs in backoff are forgotten": (14,),
    "expired leases are not recovered": (5,),
    "an idempotency key is forgotten": (0,),
    "a half-written call is reported as not written": (57, 63, 70),
    "a cancel overwrites a success": (11,),
    "a request that came late is dropped": (1,),
    "a resumed job does not keep its position": (0,),
    "leases are not renewed": (1,),
    "a drain leaves leases": (22,),
    "timeouts are not applied": (0,),
    "a success is accepted after the lease ended": (5,),
    "an ending is accepted after the lease ended": (78,),
    "an expired lease is renewed": (5,),
    "tokens do not grow": (0,),
    "a lane has no guard": (0,),
    "a promotion is lost": (0,),
    "a job in backoff does not hold its lane": (0,),
    "a claim counts no attempt": (0,),
    "a returned attempt is charged": (39, 65, 27),
    "a drain is charged": (28, 41, 76),
    "a retry does not wait": (0,),
    "an operator's retry does not reset the attempts": (10,),
    "a lost lease leaves no event": (1,),
    "the newest is claimed first": (1,),
    "a paused queue is claimed": (3,),
    "parked jobs stay parked": (4,),
    "a unique key is not enforced": (0,),
    "a duplicate is reported as new": (0,),
    "a client repeats a call with an unknown outcome": (0,),
    "a request is not read": (25, 67, 144),
    "a request is acknowledged but not stored": (8,),
    "a lost lease is not given up": (5, 28, 52),
    "an ending is written once at most": (2, 7),
    "attempts of a second queue are forgotten": (0,),
    "a key's limit is ignored": (1,),
    "a queue's limit is ignored": (1,),
    "a limit is counted for each worker": (7,),
    "a rate limit is ignored": (10,),
    "limited jobs are never admitted": (1,),
    "a misfit is charged": (9,),
    "misfits stay parked": (9,),
    "a misfit fails before its wait is over": (29, 39),
    "dead workers are not replaced": (8,),
    "a new manager adopts no worker": (2,),
    "a process slot is not locked": (2,),
    "a late job is claimed": (32, 52),
    "late jobs are not canceled": (12,),
    "a job that has started is canceled as late": (35, 55),
    "two jobs wait with one key": (12,),
    "a later call does not give its arguments": (12,),
    "a debounce does not wait for the last call": (12,),
    "a throttle's window does not move on": (35, 75),
    "a bulk operation changes jobs that match no more": (35, 72),
    "a bulk step is counted without its changes": (12, 32),
    "a bulk operation does not end": (12,),
    "a bulk step leaves a job alone that becomes ready": (1275,),
}
#: These leave no trace in the history: only the invariants, which check every write, find them.
FOUND_BY_INVARIANTS = frozenset(
    {
        "a renewal needs no token",
        "a step is written after the lease ended",
        "a success is accepted after the lease ended",
        "an ending is accepted after the lease ended",
        "an expired lease is renewed",
        "dead workers are not replaced",
        "the end of a worker is not noticed",
        "a new manager adopts no worker",
        "a process slot is not locked",
    }
)

# -- fences ------------------------------------------------------------------------------------

_OWNED = "lease_token = :token and lease_owner = :owner and "
_SEEN = "lease_token = :token and lease_owner = :owner\n    and "
_UNEXPIRED = "\n    and lease_expires_at > clock()"

bug("a success is accepted from any owner", sql(("succeed", _OWNED, "")))
bug("a success is accepted after the lease ended", sql(("succeed", _UNEXPIRED, "")))
bug("an ending is accepted from any owner", sql(("transition", _SEEN, "")))
bug(
    "an ending is accepted after the lease ended",
    sql(("transition", "(lease_expires_at <= clock()) = :expired", "1")),
)
bug("a renewal needs no token", sql(("renew", _OWNED, "")))
bug("an expired lease is renewed", sql(("renew", _UNEXPIRED, "")))
bug(
    "a valid lease is recovered",
    sql(
        ("expired", "lease_expires_at <= clock()", "lease_expires_at <= clock() + 1500000"),
        ("transition", "(lease_expires_at <= clock()) = :expired", "1"),
    ),
)
bug(
    "tokens do not grow",
    sql(("claim", "set value = value + 1", "set value = value")),
)
bug(
    "leased jobs are claimed again",
    sql(
        (
            "claim",
            "and stage in ({ready}, {lane_head})",
            "and stage in ({ready}, {lane_head}, {leased})",
        ),
        ("claim", "stage = {lane_head} or", "stage in ({lane_head}, {leased}) or"),
    ),
)

# -- lanes -------------------------------------------------------------------------------------

_NOT_UNIQUE = ("schema", "create unique index job_lane_holder", "create index job_lane_holder")


def _no_holder(stage: Stage) -> Plant:
    """Jobs in this stage do not hold their lane."""
    others = ", ".join(f"{{{each}}}" for each in sorted(HOLDS_LANE - {stage}))
    changes = [(name, "({holds_lane})", f"({others})") for name in ("claim", "promote")]
    return sql(*changes, _NOT_UNIQUE)


bug(
    "a lane has no guard",
    sql(
        ("claim", "k.target is null or k.stage = {lane_head} or", "1 or"),
        _NOT_UNIQUE,
    ),
)
bug(
    "the newest of a lane is next",
    sql(
        ("claim", "order by l.target, l.id limit 1", "order by l.target, l.id desc limit 1"),
        ("promote", "order by l.target, l.id limit 1", "order by l.target, l.id desc limit 1"),
    ),
)
bug("a promotion is lost", sql(("promote", "where id = ", "where 0 and id = ")))
bug("a paused job does not hold its lane", _no_holder(Stage.PAUSED))
bug("a job in backoff does not hold its lane", _no_holder(Stage.BACKOFF))
bug("a failed job does not hold its lane", _no_holder(Stage.FAILED))

# -- counted attempts --------------------------------------------------------------------------

_REFUND = "else attempt - :refund end"

bug("a claim counts no attempt", sql(("claim", "attempt + 1", "attempt")))
bug(
    "a recovery counts no attempt",
    sql(("transition", _REFUND, "else attempt - :refund - :lost_attempts end")),
)
bug(
    "a returned attempt is charged",
    sql(
        ("transition", _REFUND, _REFUND.replace(":refund", "(:refund and :event <> 'given_back')"))
    ),
)
bug(
    "a snooze is charged",
    sql(("transition", _REFUND, _REFUND.replace(":refund", "(:refund and :event <> 'snoozed')"))),
)
bug(
    "a drain is charged",
    sql(("transition", _REFUND, _REFUND.replace(":refund", "(:refund and :event <> 'drained')"))),
)
bug(
    "a job is retried once too often",
    sql(
        ("claim", "    max_attempts, lost_attempts,", "    max_attempts + 1, lost_attempts,"),
        ("expired", "attempt, max_attempts,", "attempt, max_attempts + 1,"),
    ),
)
bug("a retry does not wait", sql(("transition", "when :delay_seconds > 0", "when 0")))
bug(
    "a recovery ignores the policy",
    sql(("expired", "timeout_seconds, policy", "timeout_seconds, null")),
)
bug(
    "an operator's retry does not reset the attempts",
    sql(
        (
            "requeue_finished",
            "case when :fresh_attempts then 0 else attempt end, max_attempts",
            "attempt, max_attempts",
        ),
    ),
)

# -- events ------------------------------------------------------------------------------------


def _without_event(kind: str) -> tuple[str, str, str]:
    text = sqlfiles.load_statements("freehold.store.sqlite", STAGE_SQL)["transition"]
    part = next(part for part in text.split(";") if "insert into event" in part)
    return (
        "transition",
        part,
        part.replace("where id = :id", f"where :event <> '{kind}' and id = :id"),
    )


bug("a retry leaves no event", sql(_without_event("retried")))
bug("a lost lease leaves no event", sql(_without_event("lease_lost")))

# -- the queue ---------------------------------------------------------------------------------

_ORDER = "order by queue, -priority, id"

bug("the order of priorities is reversed", sql(("claim", _ORDER, "order by queue, priority, id")))
bug("the newest is claimed first", sql(("claim", _ORDER, "order by queue, -priority, id desc")))
bug(
    "a job is claimed before it is due",
    sql(("make_ready", "run_at <= clock()", "run_at <= clock() + 700000")),
)
bug("a paused queue is claimed", sql(("claim", "q.paused_at is not null", "0")))
bug(
    "jobs in backoff are forgotten",
    sql(
        (
            "make_ready",
            "stage in ({scheduled}, {backoff}) and run_at",
            "stage = {scheduled} and run_at",
        ),
    ),
)
bug(
    "parked jobs stay parked",
    sql(("unpark", "where stage = {parked} and task", "where 0 and task")),
)
bug(
    "a misfit is charged",
    sql(("transition", _REFUND, _REFUND.replace(":refund", "(:refund and :event <> 'parked')"))),
)
bug(
    "a misfit waits anew whenever it is parked",
    sql(("transition", "coalesce(parked_until, clock()", "coalesce(null, clock()")),
)
bug(
    "misfits stay parked",
    sql(("unpark_misfits", "and id = :id\nreturning", "and 0\nreturning")),
)
bug(
    "a misfit fails before its wait is over",
    sql(
        *(
            (name, "parked_until <= leased_at", "parked_until <= leased_at + 2000000")
            for name in ("claim", "claim_plain")
        )
    ),
)
bug("expired leases are not recovered", sql(("expired", "where stage = {leased}", "where 0")))

# -- limits ------------------------------------------------------------------------------------

_KEY_LEASES = "(select count(*) from job h where h.limit_key = k.limit_key"
_QUEUE_LEASES = "(select count(*) from job h where h.stage = {leased}"
_RATE_USAGE = "(select coalesce(sum(s.starts), 0) from rate_usage s"

bug(
    "a key's limit is ignored",
    sql(
        ("claim", _KEY_LEASES, _KEY_LEASES.replace("count(*)", "0 * count(*)")),
    ),
)
bug(
    "a queue's limit is ignored",
    sql(
        ("claim", _QUEUE_LEASES, _QUEUE_LEASES.replace("count(*)", "0 * count(*)")),
    ),
)
bug(
    "a limit is counted for each worker",
    sql(
        ("claim", _KEY_LEASES, _KEY_LEASES + " and h.lease_owner = :owner"),
    ),
)
bug("a rate limit is ignored", sql(("claim", _RATE_USAGE, _RATE_USAGE.replace("sum(", "0 * sum("))))
bug("limited jobs are never admitted", sql(("admit", "where id in (", "where 0 and id in (")))

# -- keys --------------------------------------------------------------------------------------

bug(
    "a unique key is not enforced",
    sql(
        (
            "enqueue_keyed",
            "where not exists (select 1 from job where unique_key = :unique_key",
            "where not exists (select 1 from job where 0 and unique_key = :unique_key",
        ),
        ("schema", "create unique index job_unique", "create index job_unique"),
    ),
)
bug(
    "an idempotency key is forgotten",
    sql(("enqueue_keyed", "where changes() = 1", "where 0")),
)


def _claims_created(waiting: Any) -> Any:
    results = yield from _find_holders(waiting)
    return {index: Enqueued(result.id, True) for index, result in results.items()}


_find_holders = enqueue_verb._find_holders
bug("a duplicate is reported as new", code(enqueue_verb, "_find_holders", _claims_created))
bug(
    "a half-written call is reported as not written",
    code(enqueue_verb, "_enqueue_keyed", enqueue_verb._insert_or_find),
)


async def _enqueue_again(self: Client, jobs: Any, connection: Any = None) -> list[JobHandle]:
    try:
        return await _aenqueue(self, jobs, connection)
    except OutcomeUnknown:
        return await _aenqueue(self, jobs, connection)


_aenqueue = client.Client.aenqueue
bug("a client repeats a call with an unknown outcome", code(Client, "aenqueue", _enqueue_again))

# -- operators ---------------------------------------------------------------------------------


def _cancel_all(job: Job) -> Any:
    if job.state is State.SUCCEEDED:
        return Transition(state=State.CANCELED, event=EventKind.CANCELED, stages=None)
    return _cancel(job)


_cancel = operator_actions._cancel


@contextlib.contextmanager
def _overwriting() -> Iterator[None]:
    wide = sql(("mark_resolved", "state = 'failed'", "state in ('failed', 'succeeded')"))
    with code(operator_actions, "_cancel", _cancel_all)(), wide():
        yield


bug("a cancel overwrites a success", _overwriting)
bug(
    "a request is not read",
    sql(
        ("stop_requests", "stop_request is not null", "0"),
        ("renew", "returning id, stop_request", "returning id, null"),
    ),
)
bug(
    "a request that came late is dropped", sql(("transition", "stop_request is :stop_request", "1"))
)
bug(
    "a request is acknowledged but not stored",
    sql(("request_stop", "set stop_request = :stop_request", "set stop_request = stop_request")),
)


def _behind_others(job: Job) -> tuple[Stage, Stage]:
    stages = _back(job)
    return (Stage.FOLLOWER, Stage.SCHEDULED) if stages[0] is Stage.LANE_HEAD else stages


_back = operator_actions._back


@contextlib.contextmanager
def _resumed_behind() -> Iterator[None]:
    """A resumed job becomes a follower, and another job is promoted as if it had left."""
    youngest = sql(
        (
            "promote",
            "l.stage in ({in_lane})\n            order by l.target, l.id limit",
            "l.stage in ({in_lane})\n            order by l.target, l.id desc limit",
        )
    )
    with code(operator_actions, "_back", _behind_others)(), youngest():
        yield


bug("a resumed job does not keep its position", _resumed_behind)

# -- the worker --------------------------------------------------------------------------------


def _nothing(*_args: Any, **_more: Any) -> None:
    return None


async def _write_once(self: Finisher, group: Any) -> None:
    with contextlib.suppress(StoreError):
        await self._store.finish(self._owner, [ended for _, ended in group])
    for lease, _ended in group:
        self._leases.remove(lease)
    self._wakeups.claim.set()
    self._wakeups.sweep.set()


async def _leave(self: Worker, claiming: Any) -> None:
    self._claimer.stop()
    await claiming


def _take_first_queue(self: Executor, attempts: Any, valid_until: float, limited: Any) -> None:
    queue = self.__dict__.setdefault("first_queue", attempts[0].queue)
    _hold(self, [each for each in attempts if each.queue == queue], valid_until, limited)


_hold = Executor.hold
bug("a lost lease is not given up", code(LeaseRenewer, "_lose", _nothing))
bug(
    "leases are not renewed",
    code(LeaseRenewer, "_renew", lambda self, now: _no_renewal(self, now)),
)
bug("an ending is written once at most", code(Finisher, "_write", _write_once))
bug("a drain leaves leases", code(Worker, "_end_jobs", _leave))
bug("attempts of a second queue are forgotten", code(Executor, "hold", _take_first_queue))
bug("timeouts are not applied", code(Runner, "_start_timeout", _nothing))


# -- the manager -------------------------------------------------------------------------------


def _start_once(self: Fleet, count: int, now: float) -> None:
    if not hasattr(self, "has_started"):
        self.has_started = True  # type: ignore[attr-defined]
        _start(self, count, now)


_start = Fleet.start
bug("dead workers are not replaced", code(Fleet, "start", _start_once))
bug("the end of a worker is not noticed", code(WorkerProcess, "end", _nothing))
bug("a new manager adopts no worker", code(Fleet, "adopt", _nothing))
bug("a process slot is not locked", code(process_slots, "_lock", lambda _file, _kind: True))


async def _no_renewal(self: LeaseRenewer, now: float) -> None:
    self._renew_at = now + self._lease_seconds / 3
    for lease in self._leases.all():
        lease.valid_until = now + self._lease_seconds


def _edited_from_the_anchor(before: Schedule, *args: Any) -> Schedule:
    """The new times count from the schedule's beginning, and not from now."""
    began = before.anchor_at
    changed = msgspec.structs.replace(_edited(before, *args), anchor_at=began, counted_to=began)
    return schedule_changes._placed(changed, args[2])


def _due_up_to_the_first(*args: Any) -> Due:
    """Only the first of the ticks counts as done."""
    found = _due(*args)
    if not found.ticks:
        return found
    return msgspec.structs.replace(found, counted_to=found.ticks[0].at)


_edited, _due = schedule_changes.edited, schedule.due
_GUARD = "next_at = :seen_at and edit = :seen_edit"
bug("a tick is fired without its guard", sql(("fire", _GUARD, "1")))
bug(
    "an edit fires backwards",
    code(schedule_changes, "edited", _edited_from_the_anchor),
)
bug("a catch-up fires twice", code(schedule_changes, "due", _due_up_to_the_first))
bug(
    "a schedule moves without its job",
    sql(
        (
            "fire",
            "where exists (select 1 from schedule",
            "where 0 and exists (select 1 from schedule",
        )
    ),
)

# -- times to start by, keys until the start, bulk operations ------------------------------------

_IS_LATE = "(start_by is not null and attempt = 0 and start_by <= clock())"
bug(
    "a late job is claimed",
    sql(*((name, f"not {_IS_LATE}", "1") for name in ("claim", "claim_plain"))),
)
bug("late jobs are not canceled", sql(("late_jobs", f"where {_IS_LATE}", "where 0")))
bug(
    "a job that has started is canceled as late",
    sql(("transition", "case when :keep_start_by then start_by end", "start_by")),
)
bug(
    "two jobs wait with one key",
    sql(
        ("schema", "create unique index job_waiting", "create index job_waiting"),
        *(
            (name, "where waiting_key = :waiting_key and stage", "where 0 and stage")
            for name in ("enqueue_waiting", "enqueue_replacing")
        ),
    ),
)
bug(
    "a later call does not give its arguments",
    sql(("enqueue_replacing", "case when :replaces_args then :args else args end", "args")),
)
bug(
    "a debounce does not wait for the last call",
    sql(("enqueue_replacing", "run_at = case when", "run_at = case when 0 and")),
)
bug(
    "a throttle's window does not move on",
    sql(("advance_throttles", "set next_at = excluded.next_at", "set next_at = next_at")),
)
bug(
    "a bulk operation changes jobs that match no more",
    sql(("next_bulk_chunk", "o.filter", "'{}'")),
)
bug("a bulk step is counted without its changes", code(bulk, "change_statements", lambda *_: []))
bug(
    "a bulk operation does not end",
    sql(("end_bulk", "where id = :operation and chunks", "where 0 and chunks")),
)
bug("a bulk step leaves a job alone that becomes ready", code(bulk, "_RECHECKS", 0))
