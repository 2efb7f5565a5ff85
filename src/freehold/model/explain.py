"""Why a job is not running: every cause as a sentence, from facts that a store has read. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from freehold.model.command_text import command, typed
from freehold.model.job import Job
from freehold.model.limit import ALL_QUEUES, ALL_TENANTS, NO_LIMIT, Limit
from freehold.model.outcome import WAITS_FOR_CODE
from freehold.model.plural import count
from freehold.model.schedule import tick_of
from freehold.model.schedule_changes import Schedule
from freehold.model.state import LEASED, Stage, State
from freehold.model.suspension import flow_of, sentence
from freehold.model.worker_info import LiveWorker, WorkerState


class PauseInfo(msgspec.Struct, frozen=True):
    """A pause: since when, by which operator, why, and until when."""

    at: datetime
    by: str
    reason: str | None = None
    until: datetime | None = None


class TenantUse(msgspec.Struct, frozen=True):
    """The live leases of one tenant; ``""`` is the store outside all tenants."""

    tenant: str
    leased: int

    def __str__(self) -> str:
        return f"{self.tenant or 'no tenant'} {self.leased}"


class LimitUse(msgspec.Struct, frozen=True):
    """A limit and its use; ``holder`` is one of the jobs that use it."""

    limit: Limit = NO_LIMIT
    leased: int = 0
    started: int = 0
    holder: int | None = None
    #: Until its rate allows the next start, if the rate is reached.
    next_start_seconds: float | None = None
    #: Its use by tenant, for a limit that tenants share.
    tenants: tuple[TenantUse, ...] = ()

    def of_tenant(self, tenant: str) -> LimitUse:
        """What a caller of one tenant may see of a shared limit: the use by that tenant."""
        own = tuple(each for each in self.tenants if each.tenant == tenant)
        return LimitUse(self.limit, sum(each.leased for each in own), tenants=own)


class QueueRules(msgspec.Struct, frozen=True):
    """The pause and the limit of one queue, of all queues, or of all tenants."""

    name: str
    pause: PauseInfo | None = None
    use: LimitUse = LimitUse()


class AwaitedJob(msgspec.Struct, frozen=True):
    """A job, or a group of jobs, that another one waits for."""

    name: str
    job_id: int | None
    state: str
    reason: str | None

    @property
    def shown(self) -> str:
        subject = f"{self.name!r}" if self.job_id is None else f"job {self.job_id} ({self.name})"
        return f"{subject}, {self.state}" + (f": {self.reason}" if self.reason else "")


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the causes depend on, besides the job itself."""

    now: datetime
    queue_rules: tuple[QueueRules, ...] = ()
    holder: Job | None = None
    lane_pause: PauseInfo | None = None
    key_use: LimitUse = LimitUse()
    ahead: int = 0
    ahead_bound: int = 0
    workers: tuple[LiveWorker, ...] = ()
    #: That made the job, if it still exists.
    schedule: Schedule | None = None
    #: For which it waits, the first of them.
    awaited: tuple[AwaitedJob, ...] = ()
    #: Of the job, for the commands of the remedies.
    tenant: str | None = None


class Cause(msgspec.Struct, frozen=True):
    """One cause: a code for programs, a sentence for people, and what to do about it."""

    code: str
    text: str
    remedy: str | None = None


def explain(job: Job, facts: Facts, seen_by: str | None = None) -> list[Cause]:
    """Every cause that keeps the job from running now. A leased job has one cause: its lease.
    ``seen_by``: the one tenant that the sentences may be about, for a caller of that tenant."""
    if job.state is not State.QUEUED:
        if job.stage is Stage.PENDING and job.waits_for is not None:
            return [_waits_for_jobs(job, facts)]
        return [_by_state(job, facts.tenant), *_schedule(job, facts)]
    causes = _waiting_causes(job, facts)
    for rules in facts.queue_rules:
        causes += _queue_causes(rules, seen_by, facts.tenant)
    if facts.lane_pause is not None:
        causes.append(_lane_paused(job, facts.lane_pause, facts.tenant))
    if job.limit_key is not None:
        causes += _use_causes(f"key {job.limit_key}", facts.key_use)
    causes += _worker_causes(job, facts)
    return (causes or [_in_queue(job, facts)]) + _start_by(job, facts) + _schedule(job, facts)


def _by_state(job: Job, tenant: str | None) -> Cause:
    why = f": {job.reason}" if job.reason else ""
    if job.state in LEASED:
        assert job.lease is not None
        text = f"it is {job.state}, leased by {job.lease.owner} until {_at(job.lease.expires_at)}"
        return Cause("leased", text)
    if job.state is State.PENDING:
        remedy = command(f"job submit {job.id}", tenant)
        return Cause("pending", "it was created but never put into the queue", remedy)
    if job.state is State.PAUSED:
        return Cause("paused", f"it is paused{why}", command(f"job resume {job.id}", tenant))
    if job.state is State.FAILED:
        if job.stage is None:
            return Cause("failed", f"it has failed{why}", command(f"job retry {job.id}", tenant))
        again, resolved = (command(f"job {verb} {job.id}", tenant) for verb in ("resume", "cancel"))
        remedy = f"{again} runs it again, {resolved} resolves it"
        return Cause("failed", f"it has failed and blocks its lane{why}", remedy)
    if job.state is not State.CANCELED:
        remedy = f"{command(f'job retry {job.id}', tenant)} runs it again"
        return Cause("finished", f"it has {job.state}{why}", remedy)
    again = f"job retry {job.id}"
    if job.policy.node is not None:  # alone it would not wait for its sources
        again = f"flow retry {job.policy.flow}"
    remedy = f"{command(again, tenant)} runs it again"
    if job.policy.in_group:
        remedy = "retry its workflow"
    return Cause("finished", f"it was {job.state}{why}", remedy)


def _waits_for_jobs(job: Job, facts: Facts) -> Cause:
    """A node of a workflow, or a job that gathers others."""
    assert job.waits_for is not None
    text = f"it {sentence(job.waits_for)}"
    if facts.awaited:
        text = f"{text}: " + "; ".join(each.shown for each in facts.awaited)
    failed = any(each.state in ("failed", "canceled") for each in facts.awaited)
    return Cause("sources", text, "retry the workflow, or cancel this job" if failed else None)


def _waiting_causes(job: Job, facts: Facts) -> list[Cause]:
    match job.stage:
        case Stage.SCHEDULED | Stage.BACKOFF if flow_of(job.waits_for) is not None:
            return [_waits_for_jobs(job, facts)]
        case Stage.SCHEDULED | Stage.BACKOFF if job.waits_for is not None:
            left = max(0.0, (job.run_at - facts.now).total_seconds())
            text = f"it {sentence(job.waits_for)}, until {_at(job.run_at)}, in {left:.0f} s"
            return [Cause("suspended", text)]
        case Stage.SCHEDULED | Stage.BACKOFF:
            left = max(0.0, (job.run_at - facts.now).total_seconds())
            why = f" ({job.reason})" if job.reason else ""
            return [Cause("not_due", f"it is due at {_at(job.run_at)}, in {left:.0f} s{why}")]
        case Stage.PARKED if job.reason is not None and job.reason.startswith(WAITS_FOR_CODE):
            return [Cause("misfit", f"it {job.reason}", "start a worker with code that fits")]
        case Stage.PARKED:
            return [
                Cause(
                    "unknown_task",
                    f"a worker of its queue does not know the task {job.task}",
                    "start a worker that has the task",
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


def _lane_paused(job: Job, pause: PauseInfo, tenant: str | None) -> Cause:
    text = f"its lane {job.target} is paused{_paused_by(pause)}"
    resume = command(f"lanes resume {typed(job.target or '')}", tenant)
    return Cause("lane_paused", text, f"resume the lane: {resume}")


_LIMITED = {ALL_QUEUES: "all queues", ALL_TENANTS: "all tenants"}


def _queue_causes(rules: QueueRules, seen_by: str | None, tenant: str | None) -> list[Cause]:
    causes = []
    if rules.pause is not None:
        is_all = rules.name == ALL_QUEUES
        what = "all queues are" if is_all else f"its queue {rules.name} is"
        remedy = command(f"queues resume {typed(rules.name)}", tenant)
        if is_all and tenant is not None:
            remedy = command(f"tenants resume {typed(tenant)}", None)
        causes.append(Cause("queue_paused", f"{what} paused{_paused_by(rules.pause)}", remedy))
    what = _LIMITED.get(rules.name, f"queue {rules.name}")
    return causes + _use_causes(what, rules.use, seen_by)


def queue_wait(all_rules: Sequence[QueueRules]) -> str | None:
    """What keeps the ready jobs of a queue from being claimed, in a few words; None: nothing."""
    for rules in all_rules:
        what = _LIMITED.get(rules.name)
        if rules.pause is not None:
            return f"{what} are paused" if what else "its queue is paused"
        for cause in _use_causes("", rules.use):
            kind = "rate" if cause.code == "rate_full" else "limit"
            return f"at the {kind} of {what or 'its queue'}"
    return None


def _use_causes(what: str, use: LimitUse, seen_by: str | None = None) -> list[Cause]:
    causes, limit, rate = [], use.limit, use.limit.rate
    if limit.max_leases == 0:
        causes.append(Cause("limit_full", f"the limit of {what} is 0: nothing may run"))
    elif limit.max_leases is not None and use.leased >= limit.max_leases:
        holders = f"; job {use.holder} is one of them" if use.holder is not None else ""
        if use.tenants:
            holders = f": {_use_by_tenant(use, seen_by)}"
        reached = f"{use.leased} of {limit.max_leases} running"
        causes.append(Cause("limit_full", f"the limit of {what} is reached: {reached}{holders}"))
    if rate is not None and use.started >= rate.starts:
        reached = f"{use.started} of {rate.starts} starts in the last {rate.seconds:g} s"
        left = use.next_start_seconds
        again = "" if left is None else f"; the next may start in {left:.0f} s"
        causes.append(Cause("rate_full", f"the rate of {what} is reached: {reached}{again}"))
    return causes


def _use_by_tenant(use: LimitUse, seen_by: str | None) -> str:
    if seen_by is None:
        return ", ".join(map(str, use.tenants))
    own = use.of_tenant(seen_by).leased
    return f"{own} in this tenant, {use.leased - own} in others"


def _worker_causes(job: Job, facts: Facts) -> list[Cause]:
    if job.stage not in (Stage.READY, Stage.LANE_HEAD, Stage.PARKED):
        return []
    serving = [
        each
        for each in facts.workers
        if each.state is WorkerState.WORKING
        and (job.queue in each.queues or ALL_QUEUES in each.queues)
    ]
    if not serving:
        return [
            Cause(
                "no_worker",
                f"no worker that serves the queue {job.queue} is alive",
                f"start a worker with its task: {_start_worker(job, facts.tenant)}",
            )
        ]
    knowing = [worker for worker in serving if job.task in worker.tasks]
    if not knowing:
        text = f"no live worker of the queue {job.queue} knows the task {job.task}"
        return [Cause("unknown_task", text, "start a worker that has the task")] * (
            job.stage is not Stage.PARKED
        )
    slots = sum(worker.concurrency for worker in knowing)
    if all(worker.running >= worker.concurrency for worker in knowing):
        text = f"all {slots} slots of the {count(len(knowing), 'worker')} that can run it are busy"
        return [Cause("no_free_slot", text, "it runs when a slot is free; start more workers")]
    return []


def _start_worker(job: Job, tenant: str | None) -> str:
    return command(f"worker --app … --queue {typed(job.queue)}", tenant)


def _start_by(job: Job, facts: Facts) -> list[Cause]:
    """No cause of waiting, but its end."""
    if job.start_by is None:
        return []
    left = (job.start_by - facts.now).total_seconds()
    when = f"in {left:.0f} s" if left > 0 else "which has passed"
    text = f"it must start by {_at(job.start_by)}, {when}, or it is canceled"
    return [Cause("start_by", text)]


def _schedule(job: Job, facts: Facts) -> list[Cause]:
    """A live job of a schedule, whose next ticks may wait for it."""
    schedule, tick = facts.schedule, tick_of(job.policy_json)
    if schedule is None or tick is None or job.stage is None:
        return []
    text = f"schedule {schedule.name} made it for the tick of {_at(tick.at)}"
    if schedule.skipped_for != job.id or schedule.skipped_at is None:
        return [Cause("schedule", text)]
    text += (
        f"; the schedule skips its ticks while this job is live, last at {_at(schedule.skipped_at)}"
    )
    remedy = 'end this job (resume or cancel it), or give the schedule another overlap than "skip"'
    return [Cause("schedule_skips", text, remedy)]


def _in_queue(job: Job, facts: Facts) -> Cause:
    jobs = f"{count(facts.ahead, 'job')} {'is' if facts.ahead == 1 else 'are'}"
    if facts.ahead >= facts.ahead_bound:
        jobs = f"at least {jobs}"
    return Cause(
        "in_queue",
        f"it is ready; {jobs} ahead of it in queue {job.queue}",
        "it runs when a worker of its queue has a free slot",
    )


def _paused_by(pause: PauseInfo) -> str:
    until = f" until {_at(pause.until)}" if pause.until else ""
    why = f": {pause.reason}" if pause.reason else ""
    return f" by {pause.by}{until}{why}"


def _at(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"
