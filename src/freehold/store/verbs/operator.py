"""Operator actions: cancel, pause, resume, retry, submit, delete.

Each verb reads the jobs, plans in pure Python, and writes guarded by what it read. A job that
changed in between is read and planned again; no lock is held meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from freehold.errors import JobNotFound, StoreUnavailable, UniqueKeyTaken
from freehold.model.audit import Author
from freehold.model.bulk import plan_delete
from freehold.model.job import Job
from freehold.model.operator_actions import (
    ActionResult,
    ActionStatus,
    NoChange,
    OperatorVerb,
    RequestStop,
    Transition,
    plan,
    plan_retry_from,
)
from freehold.model.state import Stage
from freehold.model.step import check_has_step
from freehold.store import notifications
from freehold.store.stage_sql import stage_byte
from freehold.store.statements import UNIQUE_INDEX, Conflict, Statement, Verb, read, together
from freehold.store.verbs import audit
from freehold.store.verbs.lanes import then_promote
from freehold.store.verbs.queries import read_jobs, wait_for_standbys
from freehold.store.verbs.steps import read_steps
from freehold.store.verbs.transition import (
    gathers_left,
    transition_row,
    transition_statement,
)

_TRIES = 50


def operate(
    verb: OperatorVerb, ids: Sequence[int], by: str, reason: str | None, via: str | None = None
) -> Verb[list[ActionResult]]:
    """Cancel, pause, resume, retry or submit jobs. All are checked before any is written. ``via``:
    the interface, for the audit; without it nothing is recorded there."""
    answers: dict[int, ActionResult] = {}
    left = list(dict.fromkeys(ids))
    for _ in range(_TRIES):
        jobs = yield from read_jobs(left)
        plans = {job_id: plan(verb, existing(jobs, job_id)) for job_id in left}
        for job_id, step in plans.items():
            answer = yield from _carry_out(verb, jobs[job_id], step, by, reason, via)
            if answer is not None:
                answers[job_id] = answer
        left = [job_id for job_id in left if job_id not in answers]
        if not left:
            if any(answer.status is ActionStatus.ALREADY for answer in answers.values()):
                yield from wait_for_standbys()
            return [answers[job_id] for job_id in ids]
    raise StoreUnavailable(f"job {left[0]} kept changing while it was read: try again")


def retry_from(job_id: int, step: str, author: Author) -> Verb[ActionResult]:
    """Queue a finished or paused job again, and delete this step and the later ones, in one
    transaction."""
    for _ in range(_TRIES):
        job = existing((yield from read_jobs([job_id])), job_id)
        check_has_step(job_id, step, (yield from read_steps(job_id)))
        move = plan_retry_from(job)
        change = {"state": move.state, "from_step": step}
        (seen,) = delete_rows([job])
        preceding = [
            *audit.of_jobs(author, OperatorVerb.RETRY, [(job, change)]),
            Statement("drop_steps_from", {}, [{**seen, "step": step}]),
        ]
        reason = f"from step {step!r}" + (f": {author.reason}" if author.reason else "")
        if (yield from _transition(job, move, author.by, reason, preceding)):
            return ActionResult(job_id, ActionStatus.DONE, move.state)
    raise StoreUnavailable(f"job {job_id} kept changing while it was read: try again")


def not_found(job_id: int) -> JobNotFound:
    return JobNotFound(
        f"there is no job {job_id}: it never existed, was deleted, or its retention has expired"
    )


def existing(jobs: dict[int, Job], job_id: int) -> Job:
    if job_id not in jobs:
        raise not_found(job_id)
    return jobs[job_id]


def _carry_out(
    verb: OperatorVerb,
    job: Job,
    step: Transition | RequestStop | NoChange,
    by: str,
    reason: str | None,
    via: str | None,
) -> Verb[ActionResult | None]:
    """None: the job changed after it was read."""
    author = None if via is None else Author(by, via, reason)
    match step:
        case NoChange():
            return ActionResult(job.id, ActionStatus.ALREADY, step.state)
        case RequestStop():
            record = audit.of_jobs(author, verb, [(job, {"stop_request": step.request})])
            asked = yield from _request_stop(job, step, by, reason, record)
            return ActionResult(job.id, ActionStatus.REQUESTED, job.state) if asked else None
        case Transition():
            record = audit.of_jobs(author, verb, [(job, {"state": step.state})])
            moved = yield from _transition(job, step, by, reason, record)
            return ActionResult(job.id, ActionStatus.DONE, step.state) if moved else None


def _request_stop(
    job: Job, ask: RequestStop, by: str, reason: str | None, record: Sequence[Statement]
) -> Verb[bool]:
    *_, rows = yield from together(*record, *change_statements([(job, ask)], by, reason))
    return bool(rows)


def _transition(
    job: Job, move: Transition, by: str, reason: str | None, preceded_by: Sequence[Statement]
) -> Verb[bool]:
    statements = change_statements([(job, move)], by, reason)
    # This job is ready now, or the next one of its lane.
    statements.append(notifications.notify_within(topics_of([job])))
    try:
        rows = yield from then_promote(
            statements, lanes=[job.target], keys=[job.limit_key], preceded_by=preceded_by
        )
    except Conflict as conflict:
        if conflict.index == UNIQUE_INDEX:
            yield from _refuse_if_key_taken(job)
        return False
    return any(hit for _, hit, *_ in rows)


def change_statements(
    changes: Sequence[tuple[Job, Transition | RequestStop]], by: str, reason: str | None
) -> list[Statement]:
    """Writes these changes, each only if its job is as it was read. One statement for each kind of
    change that there is."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for job, step in changes:
        name, row = _change(job, step, reason)
        rows.setdefault(name, []).append(row)
    policies = [job.policy_json for job, _ in changes]
    statements = [
        transition_statement(by, each, policies)
        if name == "transition"
        else Statement(name, {"by": by, "reason": reason}, each)
        for name, each in rows.items()
    ]
    ended = ((job.id, job.policy_json) for job, step in changes if _ends(step))
    return [*statements, *gathers_left(ended)]


def _ends(step: Transition | RequestStop) -> bool:
    return isinstance(step, Transition) and step.stages is None


def topics_of(jobs: Sequence[Job]) -> set[str]:
    """Of which workers are notified after these jobs were changed: their queues, and the sweep that
    counts the ends of members of flows."""
    topics = {notifications.queue_topic(job.queue) for job in jobs}
    if any(job.policy.flow is not None or job.policy.has_steps for job in jobs):
        topics.add(notifications.SCHEDULED)
    return topics


def _change(
    job: Job, step: Transition | RequestStop, reason: str | None
) -> tuple[str, dict[str, Any]]:
    """The statement of a change, and its row."""
    if isinstance(step, RequestStop):
        assert job.lease is not None
        request = {"stop_request": step.request.value, "event": step.event.value}
        return "request_stop", {"id": job.id, "token": job.lease.token, **request}
    if job.stage is not None:
        return "transition", _transition_row(job, step, reason)
    if step.stages is None:  # a failed job that is resolved: it stays in history, as canceled
        return "mark_resolved", {"id": job.id}
    return "requeue_finished", {
        "id": job.id,
        "seen_state": job.state.value,
        "stage": stage_byte(step.stages[0]),
        "event": step.event.value,
        "fresh_attempts": step.fresh_attempts,
        "waits_for": None,
    }


def _transition_row(job: Job, move: Transition, reason: str | None) -> dict[str, Any]:
    assert job.stage is not None
    return transition_row(
        job.id,
        job.stage,
        state=move.state,
        event=move.event,
        stages=move.stages,
        reason=reason,
        keep_run_at=move.keep_run_at,
        fresh_attempts=move.fresh_attempts,
    )


def _refuse_if_key_taken(job: Job) -> Verb[None]:
    rows = [{"position": 0, "unique_key": job.unique_key, "idempotency_key": None}]
    found = yield from read("find_holders", rows)
    for _, holder, _ in found:
        raise UniqueKeyTaken(
            f"job {job.id} cannot be queued again: its unique key {job.unique_key!r} now belongs "
            f"to job {holder}; wait for that one, or cancel it",
            holder,
        )


def delete(ids: Sequence[int], author: Author | None = None) -> Verb[list[int]]:
    """Remove jobs that are not leased, with their events. Returns which. Only jobs that are not
    leased; the next job of a freed lane is promoted."""
    jobs = yield from read_jobs(ids)
    return (yield from _delete([jobs[job_id] for job_id in sorted(jobs)], author))


def _delete(jobs: Sequence[Job], author: Author | None) -> Verb[list[int]]:
    if not jobs:
        return []
    changes: list[tuple[Job, dict[str, Any]]] = [
        (job, {"deleted": True}) for job in jobs if job.stage is not Stage.LEASED
    ]
    rows = yield from then_promote(
        [Statement("delete", {}, delete_rows(jobs))],
        lanes=[job.target for job in jobs],
        keys=[job.limit_key for job in jobs],
        preceded_by=audit.of_jobs(author, "delete", changes),
    )
    return sorted({job_id for (job_id,) in rows})


def delete_rows(jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """As they were read: a job that has changed since is not deleted."""
    return [
        {
            "id": job.id,
            "seen_stage": None if job.stage is None else stage_byte(job.stage),
            "seen_state": job.state.value,
        }
        for job in jobs
    ]


def delete_all(ids: Sequence[int], author: Author) -> Verb[None]:
    """Delete jobs: all are checked before any is deleted. A job that changed after it was read is
    checked again."""
    left = list(dict.fromkeys(ids))
    for _ in range(_TRIES):
        jobs = yield from read_jobs(left)
        for job_id in left:
            plan_delete(existing(jobs, job_id))
        deleted = yield from _delete([jobs[job_id] for job_id in sorted(jobs)], author)
        left = [job_id for job_id in left if job_id not in deleted]
        if not left:
            return
    raise StoreUnavailable(f"job {left[0]} kept changing while it was read: try again")
