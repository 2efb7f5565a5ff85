"""Jobs that have not started by their time: see model/start_by.py."""

from __future__ import annotations

from typing import Any

from freehold.model.job import Job
from freehold.model.operator_actions import OperatorVerb, Transition, plan
from freehold.model.start_by import late_reason
from freehold.store import notifications
from freehold.store.statements import StatementGroup, Verb, read
from freehold.store.verbs.lanes import then_promote
from freehold.store.verbs.queries import read_jobs
from freehold.store.verbs.transition import transition_row, transition_statement


def cancel_late(limit: int) -> Verb[list[Job]]:
    """Cancel jobs that have not started by their time, in whichever stage they wait. Returns them.
    A job that a worker has taken, or an operator has run again, since it was read stays."""
    ids = [job_id for (job_id,) in (yield from read("late_jobs", limit=limit))]
    jobs = (yield from read_jobs(ids)) if ids else {}
    late = {job.id: job for job in jobs.values() if job.stage is not None and job.start_by}
    rows = [row for job in late.values() if (row := _canceled(job)) is not None]
    if not rows:
        return []
    hits = yield from then_promote(
        [transition_statement(None, rows, (job.policy_json for job in late.values()))],
        lanes=[job.target for job in late.values()],
        keys=[job.limit_key for job in late.values()],
    )
    canceled = [late[job_id] for job_id, hit, *_ in hits if hit]
    if waited_for := [job.id for job in canceled if job.policy.notify_end]:
        yield StatementGroup((notifications.notify_ended(waited_for),), writes=False)
    return canceled


def _canceled(job: Job) -> dict[str, Any] | None:
    """None if a worker has it."""
    step = plan(OperatorVerb.CANCEL, job)
    if not isinstance(step, Transition):
        return None
    assert job.stage is not None
    return transition_row(
        job.id,
        job.stage,
        state=step.state,
        event=step.event,
        stages=step.stages,
        reason=late_reason(job),
        late=True,
    )
