"""Gathering: jobs that a handler stores and waits for, as a step of its job."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from freehold.errors import StoreUnavailable
from freehold.model import payload
from freehold.model.flow import RESULTS_LIMIT, FlowState
from freehold.model.job import JobEnd, NewJob
from freehold.model.step import StepKind
from freehold.store import notifications
from freehold.store.statements import Conflict, Statement, StatementGroup, Verb, together
from freehold.store.types import Gathered, GatheredEnd, LeaseKey
from freehold.store.verbs.flows import draw_flow_ids, member_params, read_flows
from freehold.store.verbs.queries import read_ends

_TRIES = 20
#: Ends that one statement reads.
_ENDS = 1_000


def gather(
    owner: str, lease: LeaseKey, name: str, number: int, jobs: Sequence[NewJob]
) -> Verb[Gathered | None]:
    """Store jobs, their flow, and the step that names them, in one transaction; or find those that
    an earlier call has stored. None: the lease was lost, and nothing was stored."""
    (flow,) = yield from draw_flow_ids(1)
    params, shapes = member_params(flow, jobs, owner, lease)
    statement = Statement("gather", {**params, "name": name, "number": number}, shapes)
    notify = notifications.notify_after(notifications.notifications_for(jobs))
    for _ in range(_TRIES):
        try:
            (rows,) = yield StatementGroup((statement,), True, notify)
        except Conflict:
            continue  # an earlier call has stored the step just now, and it is visible now
        if not rows:
            return None
        value, kind = rows[0]
        return Gathered.of_step(StepKind(kind), value)
    raise StoreUnavailable("the step of a gather kept changing while it was read: try again")


def finish_gather(
    owner: str, lease: LeaseKey, name: str, children: Gathered, hidden: bool
) -> Verb[Gathered | None]:
    """If all children have ended, keep how, as the value of the step; else they are returned as
    they are. Without its flow, which retention has deleted: those that are left. None: the lease
    was lost."""
    found = (yield from read_flows([children.flow])).get(children.flow)
    if found is not None and found.state is FlowState.OPEN:
        return children
    ends: dict[int, JobEnd | None] = {}
    for start in range(0, len(children.jobs), _ENDS):
        ends.update((yield from read_ends(children.jobs[start : start + _ENDS])))
    if len(ends) < len(children.jobs):
        return children  # one of them runs again
    kept = tuple(GatheredEnd(job_id, _without_trace(ends[job_id])) for job_id in children.jobs)
    what = f"the results of gather {name!r} of job {lease.job_id}"
    params = {
        "owner": owner,
        "id": lease.job_id,
        "token": lease.token,
        "name": name,
        "value": payload.encode(what, kept, RESULTS_LIMIT).decode(),
        "hidden": hidden,
    }
    (rows,) = yield from together(Statement("end_gather", params))
    return Gathered(children.flow, children.jobs, kept) if rows else None


def _without_trace(end: JobEnd | None) -> JobEnd | None:
    """It stays with the child."""
    if end is None or end.error is None or end.error.trace is None:
        return end
    return msgspec.structs.replace(end, error=msgspec.structs.replace(end.error, trace=None))
