"""Why a job is not running: each cause in words, from facts that a store has read."""

from __future__ import annotations

from datetime import datetime

import msgspec

from leasehold.model.job import Job
from leasehold.model.state import LEASED, Stage, State


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What else is known about a job's surroundings."""

    now: datetime
    queue_paused: bool = False
    queue_pause_reason: str | None = None
    queue_paused_until: datetime | None = None
    holder: Job | None = None
    ahead: int = 0
    ahead_bound: int = 0


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
    if facts.queue_paused:
        causes.append(_queue_paused(job, facts))
    if not causes:
        causes.append(_in_line(job, facts))
    return causes


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


def _queue_paused(job: Job, facts: Facts) -> Cause:
    why = f": {facts.queue_pause_reason}" if facts.queue_pause_reason else ""
    until = f" until {_at(facts.queue_paused_until)}" if facts.queue_paused_until else ""
    return Cause("queue_paused", f"its queue {job.queue} is paused{until}{why}", "resume the queue")


def _in_line(job: Job, facts: Facts) -> Cause:
    many = f"{facts.ahead}" if facts.ahead < facts.ahead_bound else f"at least {facts.ahead}"
    return Cause(
        "in_line",
        f"it is ready; {many} jobs of queue {job.queue} are ahead of it",
        "it runs when a worker of its queue has a free slot",
    )


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
