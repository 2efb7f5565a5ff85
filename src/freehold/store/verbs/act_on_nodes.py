"""Nodes whose sources have ended: released into their queues, or canceled."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from freehold.model.flow import RESULTS_LIMIT, Fate, OnFailure, fate_of
from freehold.model.history import EventKind
from freehold.model.state import Stage, State
from freehold.store.rows import raw_values_of
from freehold.store.statements import Statement, Verb, read, together, write
from freehold.store.verbs.lanes import then_promote
from freehold.store.verbs.queries import read_jobs
from freehold.store.verbs.transition import transition_row, transition_statement

#: Nodes, and members of a group, that one transaction changes.
NODES = 200
MEMBERS = 1_000


class _DueNode(NamedTuple):
    number: int
    name: str
    job_id: int | None
    part: int | None
    on_failure: str
    open_sources: int
    bad_sources: int
    #: Of a node that gets results.
    args: str | None

    @property
    def fate(self) -> Fate:
        return fate_of(self.open_sources, self.bad_sources, OnFailure(self.on_failure))


class Acted(NamedTuple):
    """How many nodes were due, how many jobs became ready, and which groups are to be canceled, or
    have no members."""

    nodes: int
    jobs: int
    parts: list[int]


def act_on_nodes(flow: int) -> Verb[Acted]:
    """One page of the nodes that are due."""
    rows = yield from read("due_nodes", flow=flow, limit=NODES)
    due = [_DueNode._make(row) for row in rows]
    opened, canceled, parts = list[dict[str, object]](), dict[int, str](), list[int]()
    jobs = 0
    for node in due:
        if node.part is not None:
            jobs += yield from _act_on_group(flow, node, node.part, parts)
            continue
        assert node.job_id is not None
        reason = yield from _refusal(flow, node)
        args = None
        if reason is None and node.args is not None:
            args, reason = yield from _arguments(flow, node)
        if reason is None:
            opened.append({"number": node.number, "id": node.job_id, "args": args})
        else:
            canceled[node.job_id] = reason
    if opened:
        (ready,) = yield from together(Statement("open_nodes", {"flow": flow}, opened))
        jobs += len(ready)
    if canceled:
        yield from _cancel(canceled)
    return Acted(len(due), jobs, parts)


def _refusal(flow: int, node: _DueNode) -> Verb[str | None]:
    """Why a node is canceled; None if it is released."""
    if node.fate is not Fate.CANCEL:
        return None
    rows = yield from read("bad_source", flow=flow, number=node.number)
    for name, job_id, state in rows:
        shown = name if job_id is None else f"{name} (job {job_id})"
        return f"its source {shown} {'has failed' if state == 'failed' else 'was canceled'}"
    return "a source of it has not succeeded"


def _arguments(flow: int, node: _DueNode) -> Verb[tuple[str | None, str | None]]:
    """The arguments of a node with the results of its sources; or why they cannot be passed."""
    rows = yield from read("node_values", flow=flow, number=node.number)
    args = raw_values_of(node.args or "{}")
    args.update((name, msgspec.Raw((result or "null").encode())) for name, result in rows)
    data = msgspec.json.encode(args)
    if len(data) > RESULTS_LIMIT:
        return None, (
            f"the results of its sources make its arguments larger than {RESULTS_LIMIT:,} bytes: "
            "store large results elsewhere, and pass where they are"
        )
    return data.decode(), None


def _act_on_group(flow: int, node: _DueNode, part: int, parts: list[int]) -> Verb[int]:
    """All members, page by page. A process that dies between two leaves the node due."""
    reason = yield from _refusal(flow, node)
    ready, released = 0, part if reason is None else None
    if reason is None:
        while opened := (yield from write("open_group", part=part, limit=MEMBERS)):
            ready += len(opened)
        if not ready:  # also one without members, which has succeeded now
            yield from write("seal_flow", flow=part)
            parts.append(part)
    else:
        yield from write("cancel_flow", flow=part, by=None, reason=reason)
        parts.append(part)
    yield from write("release_node", flow=flow, number=node.number, part=released)
    return ready


def _cancel(reasons: dict[int, str]) -> Verb[None]:
    """The end of each enters the worklist: its followers are canceled by the next fold."""
    jobs = yield from read_jobs(list(reasons))
    rows = [
        transition_row(
            job.id,
            Stage.PENDING,
            state=State.CANCELED,
            event=EventKind.CANCELED,
            stages=None,
            reason=reasons[job.id],
        )
        for job in jobs.values()
        if job.stage is Stage.PENDING
    ]
    if rows:
        policies = (job.policy_json for job in jobs.values())
        yield from then_promote([transition_statement(None, rows, policies)])
