"""What needs a person: the rules, worst first, each with its remedy.

Pure: facts of bounded reads in, findings out. `freehold doctor` and the API share these rules.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

import msgspec

from freehold.model.bulk import BulkOperation, BulkState
from freehold.model.command_text import command, typed
from freehold.model.explain import PauseInfo
from freehold.model.flow import Flow, RestingFlow
from freehold.model.limit import ALL_QUEUES
from freehold.model.live_jobs import BlockedLane, JobCounts, QueueInfo
from freehold.model.plural import bounded, count
from freehold.model.schedule_info import ScheduleInfo, ScheduleState
from freehold.model.state import State
from freehold.model.worker_info import LiveWorker, WorkerState

FINDINGS_LIMIT = 10
#: A sweep of any worker takes an expired lease back within seconds.
OVERDUE_SECONDS = 60.0
#: A worker acts on what is due for a flow within seconds, but a cancel of millions takes minutes.
STANDING_SECONDS = 300.0
_LONG_PAUSE = timedelta(days=1)
#: A batch that has no open member for this long after its begin has probably lost its producer.
_UNSEALED_FOR = timedelta(hours=1)
_NAMES_SHOWN = 5
#: Between the store's clock at the fire and at this check.
_CLOCK_TOLERANCE = timedelta(seconds=5)


class Level(StrEnum):
    """ERROR: jobs do not run. WARNING: probably forgotten. NOTICE: intended, shown by `doctor`."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


class Remedy(msgspec.Struct, frozen=True):
    """A verb on one subject, and the command that does the same. ``show`` only leads there."""

    verb: str
    kind: str
    subject: str
    command: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """``check``: the rule. ``text``: what is so. ``advice``: what to do."""

    check: str
    level: Level
    text: str
    advice: str
    remedy: Remedy | None = None


class FindingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules look at, by bounded reads. ``blocked``: lanes among the newest jobs that wait
    for a person; ``flows``: those among the oldest open ones. ``standing``: flows with
    something to act upon for minutes."""

    now: datetime
    counts: JobCounts
    count_bound: int
    queues: tuple[QueueInfo, ...] = ()
    pause_of_all: PauseInfo | None = None
    workers: tuple[LiveWorker, ...] = ()
    blocked: tuple[BlockedLane, ...] = ()
    overdue_leases: int = 0
    schedules: tuple[ScheduleInfo, ...] = ()
    bulk: tuple[BulkOperation, ...] = ()
    flows: tuple[RestingFlow, ...] = ()
    standing: tuple[Flow, ...] = ()
    tenant: str | None = None

    def command(self, words: str) -> str:
        return command(words, self.tenant)


class Rule(NamedTuple):
    """``good``: the text of `doctor` if there is nothing to report; None: no line."""

    check: str
    find: Callable[[FindingFacts], Iterator[Finding]]
    good: str | None = None


def findings(facts: FindingFacts) -> list[Finding]:
    """At most 10, errors before warnings."""
    found = [each for rule in RULES for each in rule.find(facts)]
    errors = [each for each in found if each.level is Level.ERROR]
    warnings = [each for each in found if each.level is Level.WARNING]
    return (errors + warnings)[:FINDINGS_LIMIT]


def _lanes(facts: FindingFacts) -> Iterator[Finding]:
    failed, blocked = facts.counts.failed, facts.blocked
    if failed:
        heads = [each for each in blocked if each.state is State.FAILED]
        names = _names([f"{each.target} (job {each.job_id})" for each in heads])
        verb = "job blocks its lane" if failed == 1 else "jobs block their lanes"
        yield Finding(
            check="lanes",
            level=Level.ERROR,
            text=f"{bounded(failed, facts.count_bound)} failed {verb}: {names}",
            advice="resume or cancel",
            remedy=_of_heads(facts, heads)
            if failed == len(heads)
            else _jobs(facts, "state:failed"),
        )
    paused = [each for each in blocked if each.state is State.PAUSED]
    if paused:
        names = _names([f"{each.target} (job {each.job_id})" for each in paused])
        yield Finding(
            check="lanes",
            level=Level.NOTICE,
            text=f"{count(len(paused), 'lane')} blocked by a paused job: {names}",
            advice="resume or cancel",
            remedy=_of_heads(facts, paused),
        )


def _of_heads(facts: FindingFacts, heads: Sequence[BlockedLane]) -> Remedy:
    if len(heads) > 1:
        return _jobs(facts, f"state:{heads[0].state}")
    job_id = str(heads[0].job_id)
    return Remedy("resume", "job", job_id, facts.command(f"job resume {job_id}"))


def _jobs(facts: FindingFacts, search: str) -> Remedy:
    return Remedy("show", "jobs", search, facts.command(f"jobs {typed(search)}"))


def _tasks(facts: FindingFacts) -> Iterator[Finding]:
    parked = facts.counts.parked
    if parked:
        wait = "job is" if parked == 1 else "jobs are"
        yield Finding(
            check="tasks",
            level=Level.ERROR,
            text=f"{bounded(parked, facts.count_bound)} {wait} parked, because a worker did not "
            "know the task or its code did not fit the arguments",
            advice="see freehold job explain, then start a worker that fits",
            remedy=_jobs(facts, "state:queued"),
        )


def _leases(facts: FindingFacts) -> Iterator[Finding]:
    if facts.overdue_leases:
        leases = count(facts.overdue_leases, "lease")
        verb = "was" if facts.overdue_leases == 1 else "were"
        yield Finding(
            check="leases",
            level=Level.ERROR,
            text=f"{leases} expired more than {OVERDUE_SECONDS:g} s ago and {verb} not recovered",
            advice="start a worker: every worker recovers the jobs of lost ones",
            remedy=_jobs(facts, "state:assigned,running"),
        )


def _served(facts: FindingFacts) -> Iterator[Finding]:
    served = {
        name
        for worker in facts.workers
        if worker.state is WorkerState.WORKING
        for name in worker.queues
    }
    if facts.pause_of_all is not None or ALL_QUEUES in served:
        return
    waiting = [queue.name for queue in facts.queues if queue.ready and not queue.paused]
    unserved = [name for name in waiting if name not in served]
    if unserved:
        yield Finding(
            check="workers",
            level=Level.ERROR,
            text=f"no worker serves {_names(unserved)}, where jobs are ready",
            advice="start one",
            remedy=Remedy(
                "show",
                "queue",
                unserved[0],
                facts.command(f"worker --app … --queue {typed(unserved[0])}"),
            ),
        )


def _stuck(facts: FindingFacts) -> Iterator[Finding]:
    stuck = [worker.owner for worker in facts.workers if worker.state is WorkerState.STUCK]
    if stuck:
        yield Finding(
            check="stuck workers",
            level=Level.ERROR,
            text=f"a handler does not stop in {_names(stuck)}",
            advice="a manager replaces the process; otherwise restart it",
            remedy=Remedy("show", "worker", stuck[0], facts.command("workers")),
        )


def _schedules(facts: FindingFacts) -> Iterator[Finding]:
    known = {task for worker in facts.workers for task in worker.tasks}
    for each in facts.schedules:
        text = schedule_problem(each, facts.now, known)
        if text is not None:
            show = facts.command(f"schedules show {typed(each.name)}")
            yield Finding(
                check="schedules",
                level=Level.ERROR,
                text=text,
                advice=f"see {show}",
                remedy=Remedy("show", "schedule", each.name, show),
            )


def schedule_problem(each: ScheduleInfo, now: datetime, known: Collection[str]) -> str | None:
    """Why a schedule makes no jobs although it should. ``known``: the tasks of live workers."""
    if each.problem is not None:
        return f"{each.name}: {each.problem}"
    if each.state is ScheduleState.SKIPPING:
        ticks = count(each.skipped, "tick")
        held_by = f"job {each.skipped_for} ({each.skipped_for_state})"
        return f"{each.name} waits for {held_by} and has skipped {ticks}"
    if each.last_at is not None and each.last_at > now + _CLOCK_TOLERANCE:
        until = each.last_at.isoformat()
        return f"{each.name} rests until {until}, its last tick: the store's clock was set back"
    if known and each.state is ScheduleState.ACTIVE and each.task not in known:
        return f"{each.name}: no worker knows its task {each.task}"
    if each.next_at is not None and each.next_at < now - timedelta(seconds=OVERDUE_SECONDS):
        when = f"{each.next_at:%Y-%m-%d %H:%M:%S} UTC"
        return f"{each.name} is due since {when}: a worker must be alive to fire it"
    return None


def _pauses(facts: FindingFacts) -> Iterator[Finding]:
    """A pause is intended, and is no error."""
    if facts.pause_of_all is not None:
        yield _pause("all queues are paused", ALL_QUEUES, facts.pause_of_all.at, facts)
        return
    paused = [queue for queue in facts.queues if queue.paused_at is not None]
    if paused:
        oldest = min(paused, key=lambda queue: queue.paused_at or facts.now)
        assert oldest.paused_at is not None
        text = f"paused: {_names([queue.name for queue in paused])}"
        yield _pause(text, oldest.name, oldest.paused_at, facts)


def _pause(text: str, queue: str, at: datetime, facts: FindingFacts) -> Finding:
    is_long = facts.now - at > _LONG_PAUSE
    resume = facts.command(f"queues resume {typed(queue)}")
    if queue == ALL_QUEUES and facts.tenant is not None:
        resume = command(f"tenants resume {typed(facts.tenant)}", None)
    return Finding(
        check="pauses",
        level=Level.WARNING if is_long else Level.NOTICE,
        text=f"{text}; for more than a day" if is_long else text,
        advice=f"{resume} resumes",
        remedy=Remedy("resume", "queue", queue, resume),
    )


def _bulk(facts: FindingFacts) -> Iterator[Finding]:
    for each in facts.bulk:
        if each.state is BulkState.STOPPED:
            resume = facts.command(f"bulk resume {each.id}")
            yield Finding(
                check="bulk operations",
                level=Level.WARNING,
                text=f"bulk operation {each.id} ({each.verb}) is stopped; "
                f"{count(each.left, 'job')} left",
                advice=f"{resume} continues it",
                remedy=Remedy("resume", "bulk", str(each.id), resume),
            )


def _flows(facts: FindingFacts) -> Iterator[Finding]:
    for each in facts.flows:
        flow, name = each.flow, f"{each.flow.kind} {each.flow.id} ({each.flow.name})"
        if each.held_nodes:
            waits = f"{count(each.held_nodes, 'node')} of {name}"
            hold = "holds" if each.held_nodes == 1 else "hold"
            text, verb = f"{waits} {hold}, because a source did not succeed", "retry"
        elif each.cut_off_nodes:
            text, verb = f"a retry of {name} was cut off: jobs of it wait for nothing", "retry"
        elif facts.now - flow.created_at > _UNSEALED_FOR:
            ended = count(flow.counts.total, "job")
            text = f"{name} is not sealed, and its {ended} have ended: its producer may be gone"
            verb = "seal"
        else:
            continue
        action = facts.command(f"flow {verb} {flow.id}")
        other = facts.command(f"flow cancel {flow.id}")
        yield Finding(
            check="flows",
            level=Level.WARNING,
            text=text,
            advice=f"{action}, or {other}",
            remedy=Remedy(verb, "flow", str(flow.id), action),
        )


def _standing(facts: FindingFacts) -> Iterator[Finding]:
    for flow in facts.standing:
        show = facts.command(f"flow show {flow.id}")
        waits = f"what is due for it was not done within {STANDING_SECONDS / 60:g} minutes"
        yield Finding(
            check="standing flows",
            level=Level.ERROR,
            text=f"{flow.kind} {flow.id} ({flow.name}) stands still: {waits}",
            advice="if a worker runs, the database refuses a row: its log has the error",
            remedy=Remedy("show", "flow", str(flow.id), show),
        )


def _names(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


#: The worst first.
RULES = (
    Rule("workers", _served, "every queue with ready jobs has a worker"),
    Rule("leases", _leases),
    Rule("stuck workers", _stuck),
    Rule("lanes", _lanes, "no lane is blocked by a failed job"),
    Rule("tasks", _tasks, "no job is parked"),
    Rule("schedules", _schedules, "no schedule has a problem"),
    Rule("bulk operations", _bulk),
    Rule("standing flows", _standing),
    Rule("flows", _flows),
    Rule("pauses", _pauses),
)
