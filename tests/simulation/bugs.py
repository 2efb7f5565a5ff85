"""Bugs planted on purpose, each in the SQL of the embedded store or in one function.

Each is one that somebody could have written. ``seeds`` are some that find it; how they were found:
`python -m tests.simulation.search NAME`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from freehold import client
from freehold.client import Client
from freehold.errors import OutcomeUnknown, StoreError
from freehold.manager import process_slots
from freehold.manager.fleet import Fleet
from freehold.manager.worker_process import WorkerProcess
from freehold.model import operator_actions
from freehold.model.history import EventKind
from freehold.model.job import Enqueued, Job
from freehold.model.operator_actions import Transition
from freehold.model.state import Stage, State
from freehold.store import sqlfiles
from freehold.store.sqlite import database
from freehold.store.stage_sql import STAGE_SQL
from freehold.store.verbs import enqueue as enqueueing
from freehold.worker.execution.runner import Runner
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
    """Replaces text in statements, or in the schema (``schema``); the text must be there."""

    @contextlib.contextmanager
    def plant() -> Iterator[None]:
        load, migrations = sqlfiles.load_statements, sqlfiles.load_migrations

        def loaded(package: str, values: dict[str, str]) -> dict[str, str]:
            texts = load(package, values)
            for name, old, new in changes:
                if name != "schema":
                    assert old in texts[name], f"{name} has no {old!r}"
                    texts[name] = texts[name].replace(old, new)
            return texts

        def migrated(package: str) -> list[tuple[int, str, str]]:
            found = list(migrations(package))
            for name, old, new in changes:
                if name == "schema":
                    assert any(old in text for _, _, text in found), f"the schema has no {old!r}"
                    found = [(v, n, text.replace(old, new)) for v, n, text in found]
            return found

        statements = swapped(database, "load_statements", loaded)
        with statements, swapped(database, "load_migrations", migrated), _read_anew():
            yield

    return plant


@contextlib.contextmanager
def _read_anew() -> Iterator[None]:
    """The statements are kept once they were read."""
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


#: Seeds that find each.
SEEDS: dict[str, tuple[int, ...]] = {
    "a success is accepted from anybody": (17,),
    "an ending is accepted from anybody": (11,),
    "a renewal needs no token": (24,),
    "a living lease is recovered": (0,),
    "leased jobs are claimed again": (2,),
    "the newest of a lane is next": (0,),
    "a paused job does not hold its lane": (0,),
    "a failed job does not hold its lane": (2,),
    "a recovery counts no attempt": (1,),
    "a snooze is charged": (0,),
    "a job is tried once too often": (0,),
    "a recovery does not know the policy": (6,),
    "a retry leaves no event": (0,),
    "priority is turned around": (1,),
    "a job is claimed before it is due": (0,),
    "jobs in backoff are forgotten": (5,),
    "nobody recovers": (5,),
    "an idempotency key is forgotten": (0,),
    "a half-written call is told as not written": (57,),
    "a cancel overwrites a success": (11,),
    "a request that came late is dropped": (1,),
    "a resumed job does not keep its place": (0,),
    "a keeper does not renew": (1,),
    "a drain leaves leases": (22,),
    "timeouts are not applied": (0,),
    "a success is accepted after the lease's end": (59,),
    "an ending is accepted after the lease's end": (34,),
    "an expired lease is renewed": (5,),
    "tokens do not grow": (0,),
    "a lane has no guard": (0,),
    "a promotion is lost": (0,),
    "a job in backoff does not hold its lane": (0,),
    "a claim counts no attempt": (0,),
    "a give-back is charged": (178,),
    "a drain is charged": (41,),
    "a retry does not wait": (0,),
    "a retry by hand has no fresh budget": (10,),
    "a lost lease leaves no event": (1,),
    "the newest is claimed first": (0,),
    "a paused queue is claimed": (3,),
    "parked jobs stay parked": (4,),
    "a unique key is not enforced": (0,),
    "a duplicate is told as new": (0,),
    "a client repeats what may have happened": (0,),
    "a request is not read": (15,),
    "a request is told, not kept": (8,),
    "a keeper never gives up": (4,),
    "an ending is written once at most": (10,),
    "attempts of a second queue are forgotten": (0,),
    "a key's limit is not looked at": (1,),
    "a queue's limit is not looked at": (1,),
    "a limit is counted for each worker": (7,),
    "a rate is not looked at": (10,),
    "room under a limit never comes back": (1,),
}
#: Nothing is left afterwards by which these could be known: only whoever sees every write does.
WITNESSED = frozenset(
    {
        "a renewal needs no token",
        "a success is accepted after the lease's end",
        "an ending is accepted after the lease's end",
        "an expired lease is renewed",
        "the dead are not replaced",
        "nobody sees that a worker has ended",
        "a new manager takes nobody over",
        "a seat is not locked",
    }
)

# -- fences ------------------------------------------------------------------------------------

_OWNED = "lease_token = :token and lease_owner = :owner and "
_SEEN = "lease_token = :token and lease_owner = :owner\n    and "
_UNEXPIRED = "\n    and lease_expires_at > clock()"

bug("a success is accepted from anybody", sql(("succeed", _OWNED, "")))
bug("a success is accepted after the lease's end", sql(("succeed", _UNEXPIRED, "")))
bug("an ending is accepted from anybody", sql(("settle", _SEEN, "")))
bug(
    "an ending is accepted after the lease's end",
    sql(("settle", "(lease_expires_at <= clock()) = :expired", "1")),
)
bug("a renewal needs no token", sql(("renew", _OWNED, "")))
bug("an expired lease is renewed", sql(("renew", _UNEXPIRED, "")))
bug(
    "a living lease is recovered",
    sql(
        ("expired", "lease_expires_at <= clock()", "lease_expires_at <= clock() + 1500000"),
        ("settle", "(lease_expires_at <= clock()) = :expired", "1"),
    ),
)
bug(
    "tokens do not grow",
    sql(("claim", "set value = value + 1", "set value = value")),
)
bug(
    "leased jobs are claimed again",
    sql(
        ("claim", "and stage in ('r','R')", "and stage in ('r','R','h')"),
        ("claim", "stage = 'R' or", "stage in ('R', 'h') or"),
    ),
)

# -- lanes -------------------------------------------------------------------------------------

_HOLDERS = "('R','u','h','b','p','x','l','t')"
_NOT_UNIQUE = ("schema", "create unique index job_holder", "create index job_holder")

bug(
    "a lane has no guard",
    sql(
        ("claim", "k.target is null or k.stage = 'R' or", "1 or"),
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
bug(
    "a paused job does not hold its lane",
    sql(
        ("claim", _HOLDERS, "('R','u','h','b','x','l','t')"),
        ("promote", _HOLDERS, "('R','u','h','b','x','l','t')"),
        _NOT_UNIQUE,
    ),
)
bug(
    "a job in backoff does not hold its lane",
    sql(
        ("claim", _HOLDERS, "('R','u','h','p','x','l','t')"),
        ("promote", _HOLDERS, "('R','u','h','p','x','l','t')"),
        _NOT_UNIQUE,
    ),
)
bug(
    "a failed job does not hold its lane",
    sql(
        ("claim", _HOLDERS, "('R','u','h','b','p','l','t')"),
        ("promote", _HOLDERS, "('R','u','h','b','p','l','t')"),
        _NOT_UNIQUE,
    ),
)

# -- what is counted ---------------------------------------------------------------------------

_REFUND = "else attempt - :refund end"

bug("a claim counts no attempt", sql(("claim", "attempt + 1", "attempt")))
bug(
    "a recovery counts no attempt",
    sql(("settle", _REFUND, "else attempt - :refund - :lost end")),
)
bug(
    "a give-back is charged",
    sql(("settle", _REFUND, _REFUND.replace(":refund", "(:refund and :event <> 'given_back')"))),
)
bug(
    "a snooze is charged",
    sql(("settle", _REFUND, _REFUND.replace(":refund", "(:refund and :event <> 'snoozed')"))),
)
bug(
    "a drain is charged",
    sql(("settle", _REFUND, _REFUND.replace(":refund", "(:refund and :event <> 'drained')"))),
)
bug(
    "a job is tried once too often",
    sql(
        ("claim", "max_attempts, lost, job.priority", "max_attempts + 1, lost, job.priority"),
        ("expired", "max_attempts, lost, priority", "max_attempts + 1, lost, priority"),
    ),
)
bug("a retry does not wait", sql(("settle", "when :delay_seconds > 0", "when 0")))
bug(
    "a recovery does not know the policy",
    sql(("expired", "timeout_seconds, policy", "timeout_seconds, null")),
)
bug(
    "a retry by hand has no fresh budget",
    sql(
        (
            "revive",
            "case when :fresh_attempts then 0 else attempt end, max_attempts",
            "attempt, max_attempts",
        ),
    ),
)

# -- what is told ------------------------------------------------------------------------------


def _untold(kind: str) -> tuple[str, str, str]:
    text = sqlfiles.load_statements("freehold.store.sqlite", STAGE_SQL)["settle"]
    part = next(part for part in text.split(";") if "insert into event" in part)
    return "settle", part, part.replace("where id = :id", f"where :event <> '{kind}' and id = :id")


bug("a retry leaves no event", sql(_untold("retried")))
bug("a lost lease leaves no event", sql(_untold("lease_lost")))

# -- the queue ---------------------------------------------------------------------------------

_ORDER = "order by queue, -priority, id"

bug("priority is turned around", sql(("claim", _ORDER, "order by queue, priority, id")))
bug("the newest is claimed first", sql(("claim", _ORDER, "order by queue, -priority, id desc")))
bug(
    "a job is claimed before it is due",
    sql(("make_ready", "run_at <= clock()", "run_at <= clock() + 700000")),
)
bug("a paused queue is claimed", sql(("claim", "q.paused_at is not null", "0")))
bug(
    "jobs in backoff are forgotten",
    sql(
        ("make_ready", "stage in ('w','b') and run_at", "stage = 'w' and run_at"),
    ),
)
bug("parked jobs stay parked", sql(("unpark", "where stage = 'u' and task", "where 0 and task")))
bug("nobody recovers", sql(("expired", "where stage = 'h'", "where 0")))

# -- limits ------------------------------------------------------------------------------------

_KEY_LEASES = "(select count(*) from job h where h.limit_key = k.limit_key"
_QUEUE_LEASES = "(select count(*) from job h where h.stage = 'h'"
_SPENT = "(select coalesce(sum(s.starts), 0) from spent s"

bug(
    "a key's limit is not looked at",
    sql(
        ("claim", _KEY_LEASES, _KEY_LEASES.replace("count(*)", "0 * count(*)")),
    ),
)
bug(
    "a queue's limit is not looked at",
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
bug("a rate is not looked at", sql(("claim", _SPENT, _SPENT.replace("sum(", "0 * sum("))))
bug("room under a limit never comes back", sql(("admit", "where id in (", "where 0 and id in (")))

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


def _says_it_made_it(waiting: Any) -> Any:
    answers = yield from _find_holders(waiting)
    return {place: Enqueued(answer.id, True) for place, answer in answers.items()}


_find_holders = enqueueing._find_holders
bug("a duplicate is told as new", code(enqueueing, "_find_holders", _says_it_made_it))
bug(
    "a half-written call is told as not written",
    code(enqueueing, "_enqueue_keyed", enqueueing._insert_or_find),
)


async def _enqueue_again(self: Client, jobs: Any, connection: Any = None) -> list[Enqueued]:
    try:
        return await _aenqueue(self, jobs, connection)
    except OutcomeUnknown:
        return await _aenqueue(self, jobs, connection)


_aenqueue = client.Client.aenqueue
bug("a client repeats what may have happened", code(Client, "aenqueue", _enqueue_again))

# -- operators ---------------------------------------------------------------------------------


def _cancel_all(job: Job) -> Any:
    if job.state is State.SUCCEEDED:
        return Transition(state=State.CANCELED, event=EventKind.CANCELED, stages=None)
    return _cancel(job)


_cancel = operator_actions._cancel


@contextlib.contextmanager
def _overwriting() -> Iterator[None]:
    wide = sql(("resolve", "state = 'failed'", "state in ('failed', 'succeeded')"))
    with code(operator_actions, "_cancel", _cancel_all)(), wide():
        yield


bug("a cancel overwrites a success", _overwriting)
bug(
    "a request is not read",
    sql(
        ("requests", "request is not null", "0"),
        ("renew", "returning id, request", "returning id, null"),
    ),
)
bug("a request that came late is dropped", sql(("settle", "request is :request", "1")))
bug(
    "a request is told, not kept",
    sql(("ask", "update job set request = :request", "update job set request = request")),
)


def _to_nowhere(job: Job) -> tuple[Stage, Stage]:
    stages = _back(job)
    return (Stage.FOLLOWER, Stage.WAITING) if stages[0] is Stage.HEAD else stages


_back = operator_actions._back


@contextlib.contextmanager
def _resumed_behind() -> Iterator[None]:
    """It goes behind the others, who are promoted as if it had left."""
    youngest = sql(
        (
            "promote",
            "l.stage in ('r','f','q')\n            order by l.target, l.id limit",
            "l.stage in ('r','f','q')\n            order by l.target, l.id desc limit",
        )
    )
    with code(operator_actions, "_back", _to_nowhere)(), youngest():
        yield


bug("a resumed job does not keep its place", _resumed_behind)

# -- the worker --------------------------------------------------------------------------------


def _nothing(*_args: Any, **_more: Any) -> None:
    return None


async def _write_once(self: Finisher, group: Any) -> None:
    with contextlib.suppress(StoreError):
        await self._store.finish(self._owner, [ended for _, ended in group])
    for held, _ended in group:
        self._hand.let_go(held)
    self._on_written(True)


async def _leave(self: Worker, claiming: Any, *, hurried: bool) -> None:
    await claiming


def _take_first_queue(self: Worker, attempts: Any, valid_until: float, limited: Any) -> None:
    queue = self._settings.queues[0]
    _take(self, [each for each in attempts if each.queue == queue], valid_until, limited)


_take = Worker._take
bug("a keeper never gives up", code(LeaseRenewer, "_lose", _nothing))
bug(
    "a keeper does not renew",
    code(LeaseRenewer, "_renew", lambda self, now: _no_renewal(self, now)),
)
bug("an ending is written once at most", code(Finisher, "_write", _write_once))
bug("a drain leaves leases", code(Worker, "_drain", _leave))
bug("attempts of a second queue are forgotten", code(Worker, "_take", _take_first_queue))
bug("timeouts are not applied", code(Runner, "_limit", _nothing))


# -- the manager -------------------------------------------------------------------------------


def _start_once(self: Fleet, count: int, now: float) -> None:
    if not hasattr(self, "has_started"):
        self.has_started = True  # type: ignore[attr-defined]
        _start(self, count, now)


_start = Fleet.start
bug("the dead are not replaced", code(Fleet, "start", _start_once))
bug("nobody sees that a worker has ended", code(WorkerProcess, "end", _nothing))
bug("a new manager takes nobody over", code(Fleet, "adopt", _nothing))
bug("a seat is not locked", code(process_slots, "_lock", lambda _file, _kind: True))


async def _no_renewal(self: LeaseRenewer, now: float) -> None:
    self._renew_at = now + self._lease_seconds / 3
    for held in self._hand.all():
        held.valid_until = now + self._lease_seconds
