"""Nodes whose sources have ended: released into their queues, or canceled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from freehold.errors import RowRefused
from freehold.model.flow import RESULTS_LIMIT, Fate, OnFailure, fate_of
from freehold.model.history import EventKind
from freehold.model.state import Stage, State
from freehold.store.rows import raw_values_of
from freehold.store.statements import Statement, Verb, read, together, write
from freehold.store.verbs.lanes import then_promote
from freehold.store.verbs.transition import transition_row

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
    gets_results: bool

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
        if reason is None and node.gets_results:
            args, reason = yield from _arguments(flow, node)
        if reason is None:
            opened.append({"number": node.number, "id": node.job_id, "args": args})
        else:
            canceled[node.job_id] = reason
    jobs += yield from _open(flow, opened, canceled)
    if canceled:
        yield from _cancel(canceled)
    return Acted(len(due), jobs, parts)


def _open(flow: int, rows: Sequence[dict[str, object]], canceled: dict[int, str]) -> Verb[int]:
    """Put jobs into their queues. Those that the database refuses alone are added to ``canceled``:
    they would hold up their flow for ever. A retry of the workflow runs them when they are
    corrected."""
    if not rows:
        return 0
    try:
        (ready,) = yield from together(Statement("open_nodes", {"flow": flow}, rows))
    except RowRefused as error:
        if len(rows) == 1:
            job_id = rows[0]["id"]
            assert isinstance(job_id, int)
            canceled[job_id] = _refused(error)
            return 0
        half = len(rows) // 2
        first = yield from _open(flow, rows[:half], canceled)
        return first + (yield from _open(flow, rows[half:], canceled))
    return len(ready)


def _refused(error: RowRefused) -> str:
    return f"the database refuses to release it: {error}"


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
    try:
        rows = yield from read("node_values", flow=flow, number=node.number, id=node.job_id)
    except RowRefused as error:
        return None, _refused(error)
    values: dict[str, str | None] = dict(rows)
    args = raw_values_of(values.pop("", None) or "{}")
    args.update((name, msgspec.Raw((result or "null").encode())) for name, result in values.items())
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
        while opened := (yield from _open_members(part)):
            ready += opened
        if not ready:  # also one without members, which has succeeded now
            yield from write("seal_flow", flow=part)
            parts.append(part)
    else:
        yield from write("cancel_flow", flow=part, by=None, reason=reason)
        parts.append(part)
    yield from write("release_node", flow=flow, number=node.number, part=released)
    return ready


def _open_members(part: int) -> Verb[int]:
    """The next ones. Returns how many were released or canceled."""
    try:
        return len((yield from write("open_group", part=part, limit=MEMBERS)))
    except RowRefused:
        waiting = yield from read("waiting_members", part=part, limit=MEMBERS)
    canceled: dict[int, str] = {}
    rows: list[dict[str, object]] = [{"number": 0, "id": id_, "args": None} for (id_,) in waiting]
    opened = yield from _open(part, rows, canceled)
    if canceled:
        yield from _cancel(canceled)
    return opened + len(canceled)


def _cancel(reasons: dict[int, str]) -> Verb[None]:
    """The end of each enters the worklist: its followers are canceled by the next fold."""
    rows = [
        transition_row(
            job_id,
            Stage.PENDING,
            state=State.CANCELED,
            event=EventKind.CANCELED,
            stages=None,
            reason=reason,
        )
        for job_id, reason in sorted(reasons.items())
    ]
    yield from then_promote([Statement("transition_in_flow", {"by": None}, rows)])
