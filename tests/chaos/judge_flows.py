"""What the store says of flows at the end of a run, against what it says of their jobs.

These rules need no order of events, so they hold for concurrent transactions as they are. Those of
the checker that do need one (`check_flows`) are applied too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from freehold.app import Freehold
from freehold.lab.checker.check_flows import child_prefix
from freehold.lab.checker.evidence import FlowEvidence
from freehold.lab.checker.indexed_history import IndexedHistory
from freehold.lab.checker.job_intervals import live_spans
from freehold.lab.checker.record import Record
from freehold.lab.checker.violation import Violation
from freehold.model.flow import Fate, Flow, FlowKind, FlowNode, FlowState, fate_of
from freehold.model.job import Job
from freehold.model.state import FINAL, State
from freehold.model.timestamps import micros_of
from freehold.store.types import FlowLoad
from freehold.store.verbs.flows import flow_callbacks

_BAD = (State.FAILED, State.CANCELED)
_PAGE = 1000


def flows_of(app: Freehold, jobs: Mapping[int, Job]) -> list[FlowEvidence]:
    """Every flow. Members are found by the policies of the jobs, not as the store finds them."""
    store = app._client.store
    members: dict[int, list[int]] = {}
    for job_id, job in sorted(jobs.items()):
        if job.policy.flow is not None:
            members.setdefault(job.policy.flow, []).append(job_id)
    listed = list(_listed(app))
    nodes = {
        flow.id: store.flow_nodes(flow.id) for flow in listed if flow.kind is FlowKind.WORKFLOW
    }
    parts = [node.part for each in nodes.values() for node in each if node.part is not None]
    return [
        FlowEvidence(
            flow,
            members.get(flow.id, []),
            store.run(flow_callbacks(flow.id)),
            nodes.get(flow.id, ()),
        )
        for flow in (*listed, *store.read_flows(parts).values())
    ]


def _listed(app: Freehold) -> Iterator[Flow]:
    before: int | None = None
    while True:
        page = app.operator.flow_page(before=before, limit=_PAGE)
        yield from page.flows
        if page.next is None:
            return
        before = page.next


def nothing_is_left(load: FlowLoad) -> Iterator[Violation]:
    """After the last job has ended."""
    if load.ends or load.due:
        text = f"{load.ends} ends are not folded, {load.due} flows are due, with nothing to run"
        yield Violation("N11", 0, text)


def nodes_agree_with_their_sources(history: IndexedHistory) -> Iterator[Violation]:
    """The state of a node is that of its job or group, its counters equal a recount of its sources,
    and it does not wait when these have ended."""
    flows = {each.flow.id: each.flow for each in history.evidence.flows}
    for each in history.evidence.flows:
        states = {node.number: _ended_as(history, flows, node) for node in each.nodes}
        for node in each.nodes:
            yield from _check_node(each.flow.id, node, states)


def _ended_as(history: IndexedHistory, flows: Mapping[int, Flow], node: FlowNode) -> State | None:
    if node.part is not None:
        state = flows[node.part].state
        return None if state is FlowState.OPEN else State(state.value)
    job = history.jobs[node.job_id or 0].job
    return job.state if job.state in FINAL else None


def _check_node(
    flow: int, node: FlowNode, states: Mapping[int, State | None]
) -> Iterator[Violation]:
    name, job_id = f"node {node.number} of flow {flow}", node.job_id or 0
    if node.state is not states[node.number]:
        text = f"{name} is {node.state}, and its job or group is {states[node.number]}"
        yield Violation("N12", job_id, text)
    sources = [states[number] for number in set(node.sources)]
    found = sum(each is None for each in sources), sum(each in _BAD for each in sources)
    if (node.open_sources, node.bad_sources) != found:
        counted = f"{node.open_sources} open and {node.bad_sources} bad sources"
        text = f"{name} has counted {counted}; there are {found[0]} and {found[1]}"
        yield Violation("N12", job_id, text)
    fate = fate_of(*found, node.on_failure)
    if node.waits and fate not in (Fate.WAIT, Fate.HOLD):
        text = f"{name} waits, though its sources have ended: it should {fate}"
        yield Violation("N12", job_id, text)


def gathers_return_all_children(history: IndexedHistory) -> Iterator[Violation]:
    """The value of a gather: for each child, in its place, the result of an attempt of it that
    succeeded, or an error if it failed or was canceled."""
    children = _children(history)
    for record in history.parts:
        value: Any = record.info.get("value")
        found = children.get(child_prefix(record.job, record.info["step"]))
        if record.kind != "got" or found is None:
            continue
        if len(value) != len(found):
            text = f"got {len(value)} results for the {len(found)} jobs that it gathered"
            yield Violation("N12", record.job, text, record.at)
            continue
        for number, got in enumerate(value):
            yield from _check_child(history, record, found.get(number, 0), got)


def _children(history: IndexedHistory) -> dict[str, dict[int, int]]:
    """The jobs that were gathered, by the prefix of their calls and their places."""
    found: dict[str, dict[int, int]] = {}
    for call, jobs in history.jobs_by_call.items():
        prefix, slash, number = call.rpartition("/")
        if " of " in prefix and number.isdecimal():
            found.setdefault(prefix + slash, {})[int(number)] = jobs[0]
    return found


def _check_child(
    history: IndexedHistory, record: Record, child: int, got: object
) -> Iterator[Violation]:
    intervals = history.jobs.get(child)
    if intervals is None:
        yield Violation("N12", record.job, f"got {got} for job {child}, which is lost", record.at)
        return
    if isinstance(got, dict):
        is_right = got.get("token") in {
            lease.token for lease in intervals.leases if lease.state is State.SUCCEEDED
        }
    else:
        wanted = State.CANCELED if got == "JobCanceled" else State.FAILED
        is_right = any(step.state is wanted for step in intervals.events)
    if not is_right:
        text = f"got {got} for job {child}, which never ended so"
        yield Violation("N12", record.job, text, record.at)


def one_workflow_is_open_with_a_key(history: IndexedHistory) -> Iterator[Violation]:
    """Before a second one was stored, all jobs of the first had ended."""
    by_key: dict[str, list[FlowEvidence]] = {}
    for each in sorted(history.evidence.flows, key=lambda each: each.flow.id):
        if each.flow.key is not None:
            by_key.setdefault(each.flow.key, []).append(each)
    for key, flows in by_key.items():
        for first, second in pairwise(flows):
            at = micros_of(second.flow.created_at)
            if not all(_ended_by(history, job_id, at) for job_id in first.members):
                text = f"flows {first.flow.id} and {second.flow.id} were open with the key {key}"
                yield Violation("N11", 0, text, at)


def _ended_by(history: IndexedHistory, job_id: int, at: int) -> bool:
    return any(end <= at for _, end in live_spans(history.jobs[job_id]))


FLOW_RULES = (
    nodes_agree_with_their_sources,
    gathers_return_all_children,
    one_workflow_is_open_with_a_key,
)


def count_flows(history: IndexedHistory) -> dict[str, int]:
    """How much of flows the run had, for the report."""
    flows = history.evidence.flows
    found = Counter(f"{each.flow.kind} {each.flow.state}" for each in flows)
    found["members"] = sum(len(each.members) for each in flows)
    found["members added by members"] = sum(
        len(jobs) for call, jobs in history.jobs_by_call.items() if "+" in call
    )
    found["nodes"] = sum(len(each.nodes) for each in flows)
    found["callbacks"] = sum(
        job_id is not None for each in flows for job_id in each.callbacks.values()
    )
    got = [record for record in history.parts if record.kind == "got"]
    found["gathers resumed"] = len(
        {r.job for r in got if child_prefix(r.job, r.info["step"]) + "0" in history.jobs_by_call}
    )
    found["steps"] = sum(len(steps) for steps in history.evidence.steps.values())
    return dict(sorted(found.items()))
