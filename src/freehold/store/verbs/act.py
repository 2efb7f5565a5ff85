"""Acting on flows: what the counters of the last fold allow is carried out.

Each act is a transaction of its own, guarded by what was read, and can be repeated: a process that
dies between two leaves `due` set, and the next sweep goes on. At the end `due` is reset, unless the
flow has changed since it was read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import msgspec

from freehold.errors import BadInput, RowRefused
from freehold.model import suspension
from freehold.model.flow import Flow, FlowKind, FlowState, Moment, moments_of
from freehold.model.job import NewJob
from freehold.store.schedule_text import job_from_text
from freehold.store.statements import Statement, Verb, read, together, write
from freehold.store.types import Advanced
from freehold.store.verbs.act_on_nodes import act_on_nodes
from freehold.store.verbs.enqueue import job_row, start_by_columns
from freehold.store.verbs.flow_members import LAST_ID, cancel_page
from freehold.store.verbs.flows import StoredFlow, stored_flow
from freehold.store.verbs.fold import due_flows, fold_flows, worklist

#: Folds and acts of one call; what is left is found by the next sweep.
_ROUNDS = 200
#: Flows of one sweep.
_FLOWS = 100


def advance_flows(flows: Sequence[int] = ()) -> Verb[Advanced]:
    """Fold the ends of these flows and act on them, and on those that follow from it. Without
    flows: those of the worklist, and those that are due."""
    wanted, jobs, problems, is_left = list(flows), 0, list[str](), False
    tried, refused, page, has_all = set[int](), set[int](), list[int](), True
    if not wanted:
        wanted = yield from worklist(_FLOWS)
        has_all = len(wanted) < _FLOWS
        page = yield from due_flows(0, _FLOWS)
        wanted += page
    for _ in range(_ROUNDS):
        if not wanted and len(page) == _FLOWS and refused.issuperset(page):
            # The next call would find the same ones first, and none of the younger ones.
            page = wanted = yield from due_flows(page[-1], _FLOWS)
        if not wanted:
            stands_still = 0 < len(refused) == len(tried) and has_all and not is_left
            is_left = is_left or (bool(refused) and not stands_still)
            return Advanced(jobs, is_left, tuple(problems), stands_still)
        tried.update(wanted)
        due, is_busy = yield from fold_flows(wanted)
        is_left = is_left or is_busy
        wanted = []
        for flow in due:
            try:
                made, others = yield from act_on_flow(flow, problems)
            except RowRefused as error:  # it must not hold up the others
                problems.append(f"flow {flow} stands still: {error}")
                refused.add(flow)
                continue
            jobs += made
            wanted += others
    return Advanced(jobs, is_left=True, problems=tuple(problems))


def act_on_flow(flow: int, problems: list[str]) -> Verb[tuple[int, list[int]]]:
    """One round of what is due. Returns how many jobs became ready or were stored; and the flows
    to fold next, this one among them if something is left. Adds to ``problems``."""
    rows = yield from read("read_flows", [{"id": flow}])
    if not rows:
        return 0, []
    stored = stored_flow(rows[0])
    jobs, others = 0, list[int]()
    if stored.flow.canceled_at is not None and stored.reached < LAST_ID:
        if stored.flow.kind is FlowKind.WORKFLOW and not stored.reached:
            groups = yield from _cancel_groups(stored.flow)
            others += groups
        reached = yield from cancel_page(stored.flow, stored.reached)
        yield from write("reach_flow", flow=flow, reached=reached)
        if stored.flow.kind is FlowKind.GROUP and stored.flow.sealed_at is None:
            yield from write("seal_flow", flow=flow)
        return 0, [*others, flow]
    if stored.flow.kind is FlowKind.WORKFLOW and stored.flow.canceled_at is None:
        acted = yield from act_on_nodes(flow)
        if acted.nodes:
            return acted.jobs, [flow, *acted.parts]
    if stored.flow.state is not FlowState.OPEN or stored.counted_state is not None:
        made, others = yield from _act_on_closed(stored, problems)
        jobs += made
    ended = yield from write("end_act", flow=flow, change=stored.change)
    return jobs, others if ended else [*others, flow]


def _act_on_closed(stored: StoredFlow, problems: list[str]) -> Verb[tuple[int, list[int]]]:
    flow, jobs = stored.flow, 0
    if flow.kind is FlowKind.BATCH:
        jobs = yield from _release_callbacks(flow.id, flow.state, problems)
    elif flow.kind is FlowKind.GATHER:
        try:
            jobs = yield from wake_gather(flow.id)
        except RowRefused as error:  # the sweeps set the job aside when it is due
            problems.append(f"job {flow.parent_job} cannot be woken by gather {flow.id}: {error}")
    elif flow.kind is FlowKind.GROUP and stored.counted_state != _counted_state(flow.state):
        yield from write(
            "count_group", flow=flow.id, state=flow.state.value, counted_state=stored.counted_state
        )
        assert flow.parent is not None
        return jobs, [flow.parent]
    return jobs, []


def _counted_state(state: FlowState) -> str | None:
    """What a workflow counts of the end of a group."""
    return None if state is FlowState.OPEN else state.value


def _cancel_groups(flow: Flow) -> Verb[list[int]]:
    rows = yield from write(
        "cancel_groups", flow=flow.id, by=flow.canceled_by, reason=flow.cancel_reason
    )
    return [part for (part,) in rows]


def _release_callbacks(flow: int, state: FlowState, problems: list[str]) -> Verb[int]:
    released = 0
    rows = yield from read("flow_callbacks", flow=flow)
    for moment, text, job_id in rows:
        if job_id is not None or Moment(moment) not in moments_of(state):
            continue
        try:
            row = _callback_row(flow, job_from_text(text))
            stored = yield from write("release_callback", flow=flow, moment=moment, **row)
        except (BadInput, RowRefused) as error:
            problems.append(f"on_{moment} of flow {flow} cannot be stored: {error}")
            yield from write("give_up_callback", flow=flow, moment=moment)
            continue
        released += len(stored)
    return released


def _callback_row(flow: int, job: NewJob) -> dict[str, Any]:
    policy = dataclasses.replace(job.policy, callback_of=flow)
    job = msgspec.structs.replace(job, policy=policy)
    return job_row(job) | start_by_columns(job)


def wake_gather(flow: int) -> Verb[int]:
    """Make the job ready that waits for a gather. It looks under the lock that its suspension
    takes."""
    lock = Statement("lock_signals", {}, [{"name": suspension.gather(flow)}])
    _, woken = yield from together(lock, Statement("wake_gather", {"flow": str(flow)}))
    return len(woken)
