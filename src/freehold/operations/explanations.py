"""Why jobs do not run: one job, or those of a page in a few round trips."""

from __future__ import annotations

from collections.abc import Sequence

from freehold.errors import BadInput
from freehold.model.explain import Cause, Facts, LimitUse, explain
from freehold.model.history import schedule_of
from freehold.model.job import Job
from freehold.model.state import State
from freehold.operations.input_checks import checked_ids, existing
from freehold.store.statements import Verb, method, nothing, side_by_side
from freehold.store.verbs import limits, queries, schedules, workers
from freehold.store.verbs.flow_waits import awaited_jobs

AHEAD_BOUND = 10_000
#: In a list, where the jobs ahead of each are counted.
_AHEAD_IN_LIST = 100
#: Jobs of one list.
EXPLAINED_LIMIT = 50


def why_not_running(
    job_id: int, *, seen_by: str | None = None, tenant: str | None = None
) -> Verb[list[Cause]]:
    """Every cause that keeps the job from running now. ``seen_by``: leave out what concerns other
    tenants than this one. ``tenant``: of the operator, for commands."""
    job = yield from existing(job_id)
    facts = yield from _facts(job, AHEAD_BOUND, tenant)
    return explain(job, facts, seen_by)


def why_none_running(
    ids: Sequence[int], *, seen_by: str | None = None, tenant: str | None = None
) -> Verb[dict[int, list[Cause]]]:
    """The same for the jobs of a list, without those that do not exist. Their facts are read
    together: it takes no more round trips than for one job."""
    if len(ids) > EXPLAINED_LIMIT:
        raise BadInput(f"{len(ids)} jobs: give at most {EXPLAINED_LIMIT}")
    jobs = yield from queries.read_jobs(checked_ids(ids))
    waiting = [job for job in jobs.values() if job.state is State.QUEUED or job.waits_for]
    facts = yield from side_by_side([_facts(job, _AHEAD_IN_LIST, tenant) for job in waiting])
    found = {job.id: explain(job, each, seen_by) for job, each in zip(waiting, facts, strict=True)}
    others = Facts(now=(yield from queries.now()), tenant=tenant)
    return {
        job_id: found[job_id] if job_id in found else explain(job, others, seen_by)
        for job_id, job in jobs.items()
    }


def _facts(job: Job, ahead_bound: int, tenant: str | None) -> Verb[Facts]:
    now = yield from queries.now()
    queue_rules = yield from limits.queue_rules(job.queue)
    holder = yield from queries.lane_holder(job.target) if job.target else nothing()
    lane = yield from queries.lane(job.target, bound=1) if job.target else nothing()
    key_use = yield from limits.key_use(job.limit_key) if job.limit_key else nothing()
    ahead = yield from queries.ahead(job, ahead_bound)
    live_workers = yield from workers.workers()
    made_by = schedule_of(job)
    schedule = yield from schedules.read_schedule(made_by) if made_by else nothing()
    awaited = yield from awaited_jobs(job)
    return Facts(
        now=now,
        queue_rules=tuple(queue_rules),
        holder=None if holder is None or holder.id == job.id else holder,
        lane_pause=lane.pause if lane is not None else None,
        key_use=key_use or LimitUse(),
        ahead=ahead,
        ahead_bound=ahead_bound,
        workers=tuple(live_workers),
        schedule=schedule,
        awaited=awaited,
        tenant=tenant,
    )


class ExplanationActions:
    explain = method(why_not_running)
    explain_many = method(why_none_running)
