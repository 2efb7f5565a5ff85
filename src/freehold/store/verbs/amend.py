"""Amending: another priority, queue, time or number of attempts of waiting jobs; and cloning: a new
job like an old one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from freehold.errors import StoreUnavailable
from freehold.model.audit import AuditKind, Author
from freehold.model.bulk import Amend, Amendment, plan_amend
from freehold.model.job import Enqueued, Job, NewJob
from freehold.model.operator_actions import ActionResult, ActionStatus
from freehold.store import notifications
from freehold.store.stage_sql import stage_byte
from freehold.store.statements import Statement, Verb
from freehold.store.verbs import audit, enqueue
from freehold.store.verbs.lanes import then_promote
from freehold.store.verbs.operator import existing
from freehold.store.verbs.queries import read_jobs

_TRIES = 50


def amend(ids: Sequence[int], changes: Amendment, author: Author) -> Verb[list[ActionResult]]:
    """Amend waiting jobs. All are checked before any is written. A job that changed after it was
    read is checked again."""
    answers: dict[int, ActionResult] = {}
    left = list(dict.fromkeys(ids))
    for _ in range(_TRIES):
        jobs = yield from read_jobs(left)
        plans = {job_id: plan_amend(existing(jobs, job_id), changes) for job_id in left}
        for job_id, step in plans.items():
            job = jobs[job_id]
            if (yield from _carry_out(job, step, changes, author)):
                answers[job_id] = ActionResult(job_id, ActionStatus.DONE, job.state)
        left = [job_id for job_id in left if job_id not in answers]
        if not left:
            return [answers[job_id] for job_id in ids]
    raise StoreUnavailable(f"job {left[0]} kept changing while it was read: try again")


def _carry_out(job: Job, step: Amend, changes: Amendment, author: Author) -> Verb[bool]:
    """False: the job changed after it was read."""
    queues = {job.queue, changes.queue or job.queue}
    notify = notifications.notify_within({notifications.queue_topic(name) for name in queues})
    values = {name: value for name, value in _values(changes).items() if value is not None}
    rows = yield from then_promote(
        [amend_statement([(job, step)], changes, author.by, author.reason), notify],
        lanes=[job.target],
        keys=[job.limit_key],
        preceded_by=audit.of_jobs(author, "amend", [(job, values)]),
    )
    return bool(rows)


def _values(changes: Amendment) -> dict[str, Any]:
    return msgspec.structs.asdict(changes)


def amend_statement(
    amended: Sequence[tuple[Job, Amend]], changes: Amendment, by: str, reason: str | None
) -> Statement:
    """Writes these changes, each only if its job is as it was read."""
    params = {**_values(changes), "by": by, "reason": reason}
    return Statement("amend", params, [_row(*each) for each in amended])


def _row(job: Job, step: Amend) -> dict[str, Any]:
    assert job.stage is not None
    return {
        "id": job.id,
        "seen_stage": stage_byte(job.stage),
        "state": job.state.value,
        "stage_due": stage_byte(step.stages[0]),
        "stage_later": stage_byte(step.stages[1]),
    }


def clone(job_id: int, new: NewJob, author: Author) -> Verb[Enqueued]:
    """Store a new job that was made from an old one, and record it, in one transaction."""
    after = {"task": new.task, "queue": new.queue, "priority": new.priority}
    record = audit.of_setting(author, "clone", AuditKind.JOB, str(job_id), after)
    storing = enqueue.enqueue([new])
    group = next(storing)
    while True:
        own = record if group.writes else []
        answers = yield msgspec.structs.replace(group, statements=(*own, *group.statements))
        record = [] if group.writes else record
        try:
            group = storing.send(answers[len(own) :])
        except StopIteration as end:
            (stored,) = end.value
            return stored  # type: ignore[no-any-return]
