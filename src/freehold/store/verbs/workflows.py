"""Workflows: nodes and edges, stored whole or not at all, and added by members that run."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from freehold.errors import StoreUnavailable
from freehold.model import suspension
from freehold.model.flow import FlowKind, FlowNode, NewFlow, NewNode, OnFailure
from freehold.model.job import NewJob
from freehold.model.state import State
from freehold.store import notifications
from freehold.store.statements import Statement, StatementGroup, Verb, read
from freehold.store.types import CreatedFlow, LeaseKey
from freehold.store.verbs.enqueue import ENQUEUE_BATCH, job_row
from freehold.store.verbs.flows import draw_flow_ids, flow_statements, member_statement, notifying
from freehold.store.verbs.queries import wait_for_standbys

_TRIES = 20
#: Columns of a job that a group has not.
_NO_JOB = dict.fromkeys(job_row(NewJob(task="none")))


def create_workflow(new: NewFlow, nodes: Sequence[NewNode], *, within: bool) -> Verb[CreatedFlow]:
    """Store a workflow with all its nodes, in one transaction. If a live workflow has its key, that
    one is returned, and nothing is stored."""
    groups = [node for node in nodes if node.job is None]
    for _ in range(_TRIES):
        if new.key is not None:
            found = yield from read("flow_by_key", key=new.key)
            if found:
                yield from wait_for_standbys()
                return CreatedFlow(found[0][0], created=False)
        flow, *parts = yield from draw_flow_ids(1 + len(groups))
        part_of = {node.number: part for node, part in zip(groups, parts, strict=True)}
        statements = _creation(flow, new, nodes, part_of)
        answers = yield _notified(statements, nodes, within=within)
        if not answers[0]:
            continue  # a workflow with this key was stored meanwhile, and is visible now
        jobs = _jobs(statements, answers, {part: number for number, part in part_of.items()})
        return CreatedFlow(flow, created=True, jobs=jobs)
    raise StoreUnavailable(f"the workflow with the key {new.key!r} kept changing: try again")


def _creation(
    flow: int, new: NewFlow, nodes: Sequence[NewNode], part_of: dict[int, int]
) -> list[Statement]:
    """A flow is open for producers until its seal, the last statement."""
    statements = flow_statements(flow, new)
    for node in nodes:
        if node.job is None:
            statements += _group_statements(flow, node, part_of[node.number])
    rows = [_node_row(flow, node, part_of.get(node.number)) for node in nodes]
    for start in range(0, len(rows), ENQUEUE_BATCH):
        statements.append(_adding(flow, rows[start : start + ENQUEUE_BATCH]))
    return [*statements, Statement("seal_flow", {"flow": flow})]


def _group_statements(flow: int, node: NewNode, part: int) -> list[Statement]:
    new = NewFlow(kind=FlowKind.GROUP, name=node.name)
    waits_for = suspension.sources(part) if node.sources else None
    members = [
        member_statement(
            part, node.jobs[start : start + ENQUEUE_BATCH], waits_for=waits_for, in_group=True
        )
        for start in range(0, len(node.jobs), ENQUEUE_BATCH)
    ]
    made = flow_statements(part, new, parent=flow, node=node.number)
    if node.sources and not members:
        return made  # sealed when its sources have ended: it would succeed before them
    return [*made, *members, Statement("seal_flow", {"flow": part})]


def _node_row(flow: int, node: NewNode, part: int | None) -> dict[str, Any]:
    sources = [{"source": number, "parameter": name} for number, name in node.sources]
    return {
        **(_NO_JOB if node.job is None else _job_columns(flow, node.number, node.job)),
        "number": node.number,
        "name": node.name,
        "on_failure": node.on_failure.value,
        "part": part,
        "sources": sources,
        "start_by": node.job.start_by if node.job is not None else None,
    }


def _job_columns(flow: int, number: int, job: NewJob) -> dict[str, Any]:
    assert job.start_by is None or isinstance(job.start_by, datetime)
    policy = dataclasses.replace(job.policy, flow=flow, node=number)
    return job_row(msgspec.structs.replace(job, policy=policy))


def _adding(
    flow: int,
    rows: list[dict[str, Any]],
    owner: str | None = None,
    lease: LeaseKey | None = None,
) -> Statement:
    params = {
        "flow": flow,
        "owner": owner,
        "id": None if lease is None else lease.job_id,
        "token": None if lease is None else lease.token,
    }
    return Statement("add_nodes", params, rows)


def _notified(
    statements: Sequence[Statement], nodes: Sequence[NewNode], *, within: bool
) -> StatementGroup:
    free = [node for node in nodes if not node.sources]
    jobs = [job for node in free for job in ((node.job,) if node.job else node.jobs[:1])]
    return notifying(statements, jobs, within=within, also_sweep=True)


def _jobs(
    statements: Sequence[Statement], answers: Sequence[Any], number_of: dict[int, int]
) -> dict[int, list[int]]:
    """The jobs of nodes, by number; ``number_of``: those of groups."""
    jobs: dict[int, list[int]] = {}
    for statement, rows in zip(statements, answers, strict=False):
        if statement.name == "add_nodes":
            jobs.update((number, [job_id]) for number, job_id in rows if job_id is not None)
        elif statement.name == "add_members":
            members = jobs.setdefault(number_of[statement.params["flow"]], [])
            members += sorted(job_id for job_id, _ in rows)
    return jobs


def add_nodes(
    flow: int, nodes: Sequence[NewNode], owner: str, lease: LeaseKey
) -> Verb[dict[int, int] | None]:
    """Add nodes to a workflow whose member runs, in one transaction. Returns their jobs by number.
    None: the lease was lost, or the workflow is canceled, and nothing was stored. Raises Conflict
    if a number or a name was taken meanwhile."""
    adding = _adding(flow, [_node_row(flow, node, None) for node in nodes], owner, lease)
    sources = sorted({number for node in nodes for number, _ in node.sources})
    locking = Statement("lock_sources", {**adding.params, "sources": sources})
    topics = {notifications.SCHEDULED}
    for node in nodes:
        if node.job is not None and not node.sources:
            topics |= notifications.notifications_for([node.job])
    notify = notifications.notify_after(topics)
    _, rows = yield StatementGroup((locking, adding), True, notify)
    jobs = {number: job_id for number, job_id in rows if job_id is not None}
    return jobs if len(jobs) == len(nodes) else None


def flow_nodes(flow: int) -> Verb[list[FlowNode]]:
    """The nodes of a workflow, in the order in which they were added."""
    rows = yield from read("flow_nodes", flow=flow)
    return [
        FlowNode(
            flow=row[0],
            number=row[1],
            name=row[2],
            job_id=row[3],
            part=row[4],
            on_failure=OnFailure(row[5]),
            state=None if row[6] is None else State(row[6]),
            open_sources=row[7],
            bad_sources=row[8],
            waits=bool(row[9]),
            sources=tuple(sorted(int(each) for each in (row[10] or "").split(",") if each)),
        )
        for row in rows
    ]
