"""Flows: stored, filled, sealed, canceled, retried and read. `fold.py` and `act.py` do the rest."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from freehold.model.audit import AuditKind, Author
from freehold.model.flow import (
    Counts,
    Flow,
    FlowKind,
    FlowState,
    Moment,
    NewFlow,
    RestingFlow,
)
from freehold.model.job import NewJob
from freehold.model.policy import Policy
from freehold.model.timestamps import maybe_time, time_of
from freehold.store import notifications
from freehold.store.schedule_text import job_text
from freehold.store.statements import Row, Rows, Statement, StatementGroup, Verb, read, write
from freehold.store.types import FlowLoad, FlowPage, LeaseKey
from freehold.store.verbs import audit
from freehold.store.verbs.enqueue import ENQUEUE_BATCH, shape_of_job, shapes_of, start_by_columns
from freehold.store.verbs.queries import wait_for_standbys

_LAST_ID = 2**63 - 1


def draw_flow_ids(count: int) -> Verb[list[int]]:
    """Ids for new flows. One that is not used is never given again."""
    rows = yield from write("draw_flow_ids", count=count)
    return [flow for (flow,) in rows]


def create_batch(
    new: NewFlow, jobs: Sequence[NewJob], *, within: bool
) -> Verb[tuple[int, list[int]]]:
    """Store a batch with its first members and its callbacks, in one transaction. Returns its id
    and those of the members. ``within``: in a caller's transaction, which also notifies workers."""
    (flow,) = yield from draw_flow_ids(1)
    statements = [
        *flow_statements(flow, new),
        *(member_statement(flow, part) for part in _parts(jobs)),
        *([Statement("seal_flow", {"flow": flow})] if new.sealed else []),
    ]
    answers = yield notifying(statements, jobs, within=within, also_sweep=new.sealed)
    return flow, _ids(statements, answers)


def add_members(
    flow: int,
    jobs: Sequence[NewJob],
    owner: str | None = None,
    lease: LeaseKey | None = None,
    *,
    within: bool = False,
) -> Verb[list[int] | None]:
    """Add members to a flow, all or none, in one transaction. ``lease``: that of the member which
    adds them; without it the flow must not be sealed. None: the flow is sealed, closed or canceled,
    or the lease was lost, and nothing was stored."""
    if not jobs:
        return []
    # By one statement: a lease can expire between two.
    parts = _parts(jobs) if lease is None else [jobs]
    statements = [member_statement(flow, part, owner, lease) for part in parts]
    answers = yield notifying(statements, jobs, within=within)
    ids = _ids(statements, answers)
    # The flow's row is locked from the first statement on.
    return ids if len(ids) == len(jobs) else None


def _ids(statements: Sequence[Statement], answers: Sequence[Rows]) -> list[int]:
    """Of members, in their order: ids are drawn in it."""
    return [
        job_id
        for statement, rows in zip(statements, answers, strict=False)
        if statement.name == "add_members"
        for job_id, _ in sorted(rows)
    ]


def seal_flow(flow: int, author: Author | None = None) -> Verb[bool]:
    """No producer adds members any more. False: it was sealed before, or does not exist."""
    record = audit.of_setting(author, "seal", AuditKind.FLOW, str(flow), {"sealed": True})
    sealing = Statement("seal_flow", {"flow": flow})
    wake = notifications.notify_within([notifications.SCHEDULED])
    answers = yield StatementGroup((*record, sealing, wake), writes=True)
    if not answers[len(record)]:
        yield from wait_for_standbys()
        return False
    return True


def flow_statements(
    flow: int, new: NewFlow, parent: int | None = None, node: int | None = None
) -> list[Statement]:
    """A flow without members. Of a group: its workflow, and its node there."""
    row = {
        "id": flow,
        "kind": new.kind.value,
        "name": new.name,
        "key": new.key,
        "created_by": new.created_by,
        "parent_job": new.parent_job,
        "parent": parent,
        "node": node,
    }
    callbacks = [
        {"flow": flow, "moment": moment.value, "job": job_text(job)}
        for moment, job in new.callbacks.items()
    ]
    statements = [Statement("insert_flows", {}, [row])]
    if callbacks:
        statements.append(Statement("insert_callbacks", {}, callbacks))
    return statements


def member_statement(
    flow: int,
    jobs: Sequence[NewJob],
    owner: str | None = None,
    lease: LeaseKey | None = None,
    waits_for: str | None = None,
    *,
    in_group: bool = False,
) -> Statement:
    """Their policy names the flow."""
    params, shapes = member_params(flow, jobs, owner, lease, in_group=in_group)
    return Statement("add_members", {**params, "waits_for": waits_for}, shapes)


def member_params(
    flow: int,
    jobs: Sequence[NewJob],
    owner: str | None,
    lease: LeaseKey | None,
    *,
    in_group: bool = False,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The parameters of a statement that stores members, and their shapes."""
    numbers, shapes = shapes_of(in_flow(jobs, flow, in_group=in_group), _shape, start_by_columns)
    params = {
        "flow": flow,
        "calls": [job.args.decode() for job in jobs],
        "numbers": numbers,
        "owner": owner,
        "id": None if lease is None else lease.job_id,
        "token": None if lease is None else lease.token,
    }
    return params, shapes


def _shape(job: NewJob) -> tuple[Any, ...]:
    return (*shape_of_job(job), job.start_by)


def in_flow(jobs: Iterable[NewJob], flow: int, *, in_group: bool = False) -> list[NewJob]:
    """Jobs of one policy still share one, so that their shapes are found by identity."""
    marked: dict[int, Policy] = {}
    found = []
    for job in jobs:
        policy = marked.get(id(job.policy))
        if policy is None:
            policy = dataclasses.replace(job.policy, flow=flow, in_group=in_group)
            marked[id(job.policy)] = policy
        found.append(msgspec.structs.replace(job, policy=policy))
    return found


def _parts(jobs: Sequence[NewJob]) -> list[Sequence[NewJob]]:
    return [jobs[start : start + ENQUEUE_BATCH] for start in range(0, len(jobs), ENQUEUE_BATCH)]


def notifying(
    statements: Sequence[Statement],
    jobs: Sequence[NewJob],
    *,
    within: bool,
    also_sweep: bool = False,
) -> StatementGroup:
    topics = notifications.notifications_for(jobs) if jobs else set()
    if also_sweep:
        topics = topics | {notifications.SCHEDULED}
    if not topics:
        return StatementGroup(tuple(statements), writes=True)
    if within:
        notify = notifications.notify_within(topics)
        return StatementGroup((*statements, notify), writes=True)
    return StatementGroup(tuple(statements), True, notifications.notify_after(topics))


# -- reading ------------------------------------------------------------------------------------


class StoredFlow(msgspec.Struct, frozen=True):
    """A flow, and what its acts are guarded by."""

    flow: Flow
    counted_state: str | None
    due: bool
    change: int
    reached: int


#: Flows that one read looks at.
WINDOW = 10_000
#: Flows with something to act upon that one read looks at.
_DUE = 100


def stored_flow(row: Row) -> StoredFlow:
    (flow, kind, name, key, state, *counts, created_at, created_by, sealed_at, closed_at) = row[:13]
    canceled_at, canceled_by, cancel_reason, parent_job, parent, node = row[13:19]
    counted_state, due, change, reached = row[19:]
    return StoredFlow(
        Flow(
            id=flow,
            kind=FlowKind(kind),
            name=name,
            key=key,
            state=FlowState(state),
            counts=Counts(*counts),
            created_at=time_of(created_at),
            created_by=created_by,
            sealed_at=maybe_time(sealed_at),
            closed_at=maybe_time(closed_at),
            canceled_at=maybe_time(canceled_at),
            canceled_by=canceled_by,
            cancel_reason=cancel_reason,
            parent_job=parent_job,
            parent=parent,
            node=node,
        ),
        counted_state,
        bool(due),
        change,
        reached,
    )


def read_flows(ids: Sequence[int]) -> Verb[dict[int, Flow]]:
    """Flows by id."""
    rows = yield from read("read_flows", [{"id": flow} for flow in ids])
    found = [stored_flow(row).flow for row in rows]
    return {flow.id: flow for flow in found}


def flows(
    limit: int,
    before: int | None = None,
    kind: FlowKind | None = None,
    state: FlowState | None = None,
) -> Verb[list[Flow]]:
    """The flows of a page."""
    return list((yield from flow_page(limit, before, kind, state)).flows)


def flow_page(
    limit: int,
    before: int | None = None,
    kind: FlowKind | None = None,
    state: FlowState | None = None,
) -> Verb[FlowPage]:
    """A page, newest first; ``before``: the ``next`` of the page before. It looks at 10,000 flows,
    so that with a rare filter it can be short and still have a next one."""
    look: dict[str, Any] = {
        "before": _LAST_ID if before is None else before,
        "window": WINDOW,
    }
    rows = yield from read(
        "flows",
        kind=None if kind is None else kind.value,
        state=None if state is None else state.value,
        limit=limit,
        **look,
    )
    found = tuple(stored_flow(row).flow for row in rows)
    if len(found) == limit:
        return FlowPage(found, found[-1].id)
    end = yield from read("end_of_flow_window", **look)
    return FlowPage(found, end[0][0] if end else None)


def flow_callbacks(flow: int) -> Verb[dict[Moment, int | None]]:
    """The callbacks of a flow, each with its job once it is released."""
    rows = yield from read("flow_callbacks", flow=flow)
    return {Moment(moment): job_id for moment, _, job_id in rows}


def flow_load() -> Verb[FlowLoad]:
    """What is open, and what waits to be folded or acted upon, each up to a bound."""
    ((is_open, due, ends),) = yield from read("flow_load", bound=WINDOW)
    return FlowLoad(is_open, due, ends)


def resting_flows(limit: int) -> Verb[list[RestingFlow]]:
    """Of the oldest 10,000 open flows those that wait for a person."""
    rows = yield from read("resting_flows", bound=WINDOW, limit=limit)
    return [RestingFlow(stored_flow(row[:-2]).flow, *row[-2:]) for row in rows]


def standing_flows(seconds: float, limit: int) -> Verb[list[Flow]]:
    """Flows that have had something to act upon for so long, oldest first."""
    rows = yield from read("standing_flows", seconds=seconds, bound=_DUE, limit=limit)
    return [stored_flow(row).flow for row in rows]
