"""Why a job is not running: each cause in words, from facts that a store has read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

import msgspec

from freehold.model.job import Job
from freehold.model.limit import ALL_QUEUES, ALL_TENANTS, NO_LIMIT, Limit
from freehold.model.state import LEASED, Stage, State
from freehold.model.worker_info import LiveWorker, WorkerState


class PauseInfo(msgspec.Struct, frozen=True):
    """Who stopped something, since when, why, and until when."""

    at: datetime
    by: str
    reason: str | None = None
    until: datetime | None = None


class TenantUse(msgspec.Struct, frozen=True):
    """So many live leases; ``""`` is the store that no tenant's is."""

    tenant: str
    leased: int

    def __str__(self) -> str:
        return f"{self.tenant or 'no tenant'} {self.leased}"


class LimitUse(msgspec.Struct, frozen=True):
    """A limit and how much of it is used: ``holder`` is one who uses it."""

    limit: Limit = NO_LIMIT
    leased: int = 0
    started: int = 0
    holder: int | None = None
    #: Which tenants use it, and how much: where they share it.
    tenants: tuple[TenantUse, ...] = ()


class QueueRules(msgspec.Struct, frozen=True):
    """What somebody has said about a queue, or about all of them."""

    name: str
    pause: PauseInfo | None = None
    use: LimitUse = LimitUse()


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What else is known about a job's surroundings."""

    now: datetime
    doors: tuple[QueueRules, ...] = ()
    holder: Job | None = None
    lane_pause: PauseInfo | None = None
    key: LimitUse = LimitUse()
    ahead: int = 0
    ahead_bound: int = 0
    workers: tuple[LiveWorker, ...] = ()


class Cause(msgspec.Struct, frozen=True):
    """One reason: a word for programs, a sentence for people, and what to do about it."""

    code: str
    text: str
    remedy: str | None = None


def explain(job: Job, facts: Facts) -> list[Cause]:
    """Every cause that keeps the job from running now; one that says so if it does run."""
    if job.state is not State.QUEUED:
        return [_by_state(job)]
    causes = _waiting_causes(job, facts)
    for door in facts.doors:
        causes += _queue_causes(door)
    if facts.lane_pause is not None:
        causes.append(_lane_paused(job, facts.lane_pause))
    if job.limit_key is not None:
        causes += _use_causes(f"its limit key {job.limit_key}", facts.key)
    workers = _worker_causes(job, facts.workers)
    return causes + workers if causes or workers else [_in_line(job, facts)]


def _by_state(job: Job) -> Cause:
    why = f": {job.reason}" if job.reason else ""
    if job.state in LEASED:
        assert job.lease is not None
        text = f"it is {job.state}, leased by {job.lease.owner} until {_at(job.lease.expires_at)}"
        return Cause("leased", text)
    if job.state is State.PENDING:
        return Cause("pending", "it was created but never put into the queue", "enqueue it")
    if job.state is State.PAUSED:
        return Cause("paused", f"it is paused{why}", "resume it")
    if job.state is State.FAILED:
        return Cause("failed", f"it has failed{why}", "resume it, or cancel it to resolve it")
    verb = "was" if job.state is State.CANCELED else "has"
    return Cause("finished", f"it {verb} {job.state}{why}", "retry runs it again")


def _waiting_causes(job: Job, facts: Facts) -> list[Cause]:
    match job.stage:
        case Stage.WAITING | Stage.BACKOFF:
            left = max(0.0, (job.run_at - facts.now).total_seconds())
            why = f" ({job.reason})" if job.reason else ""
            return [Cause("not_due", f"it is due at {_at(job.run_at)}, in {left:.0f} s{why}")]
        case Stage.PARKED:
            return [
                Cause(
                    "unknown_task",
                    f"the worker that met it does not know the task {job.task}",
                    "start a worker that has it; one that has takes it when a slot is free",
                )
            ]
        case Stage.FOLLOWER | Stage.READY if facts.holder is not None and job.target is not None:
            return [_lane(job, facts.holder)]
    return []


def _lane(job: Job, holder: Job) -> Cause:
    why = f" ({holder.reason})" if holder.reason else ""
    text = f"its lane {job.target} is held by job {holder.id}, which is {holder.state}{why}"
    if holder.state in (State.PAUSED, State.FAILED):
        return Cause("lane_blocked", text, f"resume or cancel job {holder.id}")
    return Cause("lane_busy", text)


def _lane_paused(job: Job, pause: PauseInfo) -> Cause:
    text = f"its lane {job.target} is paused{_paused_by(pause)}"
    lane = _typed(job.target or "")
    return Cause("lane_paused", text, f"resume the lane: freehold lanes resume {lane}")


_TOGETHER = {ALL_QUEUES: "all queues together", ALL_TENANTS: "all tenants together"}


def _queue_causes(door: QueueRules) -> list[Cause]:
    what = "everything" if door.name == ALL_QUEUES else f"its queue {door.name}"
    causes = []
    if door.pause is not None:
        verb = "is paused" + _paused_by(door.pause)
        remedy = f"freehold queues resume {_typed(door.name)}"
        if door.name == ALL_QUEUES:
            remedy += "; of a tenant: freehold tenants resume NAME"
        causes.append(Cause("queue_paused", f"{what} {verb}", remedy))
    return causes + _use_causes(_TOGETHER.get(door.name, what), door.use)


def _use_causes(what: str, use: LimitUse) -> list[Cause]:
    causes, limit = [], use.limit
    if limit.max_leases is not None and use.leased >= limit.max_leases:
        who = f"; job {use.holder} is among them" if use.holder is not None else ""
        if use.tenants:
            who = f": {', '.join(map(str, use.tenants))}"
        causes.append(
            Cause("limit_full", f"{what}: {use.leased} of at most {limit.max_leases} run{who}")
        )
    if limit.rate is not None and use.started >= limit.rate.starts:
        causes.append(
            Cause(
                "rate_full",
                f"{what}: {use.started} started within {limit.rate.seconds:g} s, "
                f"which is all that may",
            )
        )
    return causes


def _worker_causes(job: Job, workers: Sequence[LiveWorker]) -> list[Cause]:
    if job.stage not in (Stage.READY, Stage.HEAD, Stage.PARKED):
        return []
    serving = [
        each for each in workers if job.queue in each.queues and each.state is WorkerState.WORKING
    ]
    if not serving:
        return [
            Cause(
                "no_worker",
                f"no worker that serves the queue {job.queue} is alive",
                f"start one that has its task: freehold worker --app … --queue {job.queue}",
            )
        ]
    knowing = [worker for worker in serving if job.task in worker.tasks]
    if not knowing:
        text = f"no live worker of the queue {job.queue} knows the task {job.task}"
        return [Cause("unknown_task", text, "start a worker that has it")] * (
            job.stage is not Stage.PARKED
        )
    slots = sum(worker.concurrency for worker in knowing)
    if all(worker.running >= worker.concurrency for worker in knowing):
        text = f"all {slots} slots of the {len(knowing)} workers that could run it are busy"
        return [Cause("no_free_slot", text, "it runs when one ends; more workers have more slots")]
    return []


def _in_line(job: Job, facts: Facts) -> Cause:
    many = f"{facts.ahead}" if facts.ahead < facts.ahead_bound else f"at least {facts.ahead}"
    return Cause(
        "in_line",
        f"it is ready; {many} jobs of queue {job.queue} are ahead of it",
        "it runs when a worker of its queue has a free slot",
    )


def _typed(name: str) -> str:
    """As it can be typed into a shell."""
    return name if re.fullmatch(r"[\w.@:/-]+", name) else "'" + name.replace("'", "'\\''") + "'"


def _paused_by(pause: PauseInfo) -> str:
    until = f" until {_at(pause.until)}" if pause.until else ""
    why = f": {pause.reason}" if pause.reason else ""
    return f" by {pause.by}{until}{why}"


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
