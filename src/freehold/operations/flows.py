"""Batches, gathers and workflows: lists, one with its nodes, members; cancel, retry, seal."""

from __future__ import annotations

from collections.abc import Sequence

from freehold.errors import BadInput
from freehold.model.audit import PYTHON
from freehold.model.flow import Flow, FlowKind, FlowNode, FlowState
from freehold.model.flow_graph import FlowCallback, FlowDetail, NodeInfo, node_state
from freehold.model.state import State
from freehold.operations.input_checks import LARGEST_ID, author_of
from freehold.store.statements import Verb, method
from freehold.store.types import PAGE_LIMIT, FlowPage, MemberPage
from freehold.store.verbs import act, flow_actions, flow_members, queries, workflows
from freehold.store.verbs import flows as flow_verbs

#: Jobs and groups of nodes that are looked up for the state of their node.
_LOOKED_UP = 500
#: Jobs that a cancel changes itself.
_AT_ONCE = 200


def flow_page(
    *,
    kind: FlowKind | str | None = None,
    state: FlowState | str | None = None,
    before: int | None = None,
    limit: int = 50,
) -> Verb[FlowPage]:
    """Flows, newest first; ``before`` is the ``next`` of the page before. The groups of a workflow
    are shown with it. A page with a rare filter can be short, or empty, and have a next one."""
    if not 1 <= limit <= PAGE_LIMIT:
        raise BadInput(f"limit={limit}: a page has 1 to {PAGE_LIMIT} flows")
    if before is not None and not 0 < before <= LARGEST_ID:
        raise BadInput(f"before={before}: give the `next` of the page before")
    chosen = None if kind is None else FlowKind(_one_of("kind", kind, FlowKind))
    wanted = None if state is None else FlowState(_one_of("state", state, FlowState))
    return (yield from flow_verbs.flow_page(limit, before, chosen, wanted))


def list_flows(
    *,
    kind: FlowKind | str | None = None,
    state: FlowState | str | None = None,
    before: int | None = None,
    limit: int = 50,
) -> Verb[list[Flow]]:
    """The flows of such a page."""
    page = yield from flow_page(kind=kind, state=state, before=before, limit=limit)
    return list(page.flows)


def _one_of(what: str, given: str, choices: type[FlowKind] | type[FlowState]) -> str:
    if given not in list(choices):
        raise BadInput(f"{what}={given!r}: give one of {', '.join(choices)}")
    return given


def flow(flow_id: int) -> Verb[Flow]:
    """A flow with its counts, from one row."""
    if type(flow_id) is not int or not 0 < flow_id <= LARGEST_ID:
        raise flow_actions.flow_not_found(flow_id)
    return (yield from flow_actions.existing_flow(flow_id))


def nodes_of_flow(flow_id: int) -> Verb[list[FlowNode]]:
    """The nodes of a workflow as they are stored; none for other flows."""
    return workflows.flow_nodes(flow_id)


def flow_detail(flow_id: int) -> Verb[FlowDetail]:
    """A flow with its callbacks and nodes."""
    found = yield from flow(flow_id)
    callbacks = yield from flow_verbs.flow_callbacks(flow_id)
    nodes: list[FlowNode] = []
    if found.kind is FlowKind.WORKFLOW:
        nodes = yield from workflows.flow_nodes(flow_id)
    return FlowDetail(
        found,
        [FlowCallback(moment, job_id) for moment, job_id in callbacks.items()],
        (yield from _node_infos(nodes)),
    )


def _node_infos(nodes: Sequence[FlowNode]) -> Verb[list[NodeInfo]]:
    released = [each.job_id for each in nodes if not each.waits and each.state is None]
    ids = [job_id for job_id in released if job_id is not None][:_LOOKED_UP]
    jobs = yield from queries.read_jobs(ids)
    parts = [each.part for each in nodes if each.part is not None][:_LOOKED_UP]
    groups = yield from flow_verbs.read_flows(parts)
    states = {job.id: job.state.value for job in jobs.values()}
    return [
        NodeInfo(
            number=each.number,
            name=each.name,
            state=states.get(each.job_id or 0, node_state(each)),
            job_id=each.job_id,
            group=each.part,
            counts=groups[each.part].counts if each.part in groups else None,
            on_failure=each.on_failure,
            sources=each.sources,
        )
        for each in nodes
    ]


def members(
    flow_id: int, after: int = 0, limit: int = 100, states: Sequence[State] = ()
) -> Verb[MemberPage]:
    """A page of the jobs of a flow in the order of their ids. With a rare state it can be short,
    or empty, and still have a ``next`` one."""
    if not 1 <= limit <= PAGE_LIMIT:
        raise BadInput(f"limit={limit}: a page has 1 to {PAGE_LIMIT} jobs")
    if not 0 <= after <= LARGEST_ID:
        raise BadInput(f"after={after}: give the `next` of the page before")
    yield from flow(flow_id)
    return (yield from flow_members.flow_members(flow_id, after, limit, states))


def cancel_flow(
    flow_id: int, *, by: str, reason: str | None = None, via: str = PYTHON
) -> Verb[bool]:
    """Cancel all members that have not ended; running ones are asked to stop. Up to 200 are
    canceled by the call itself, more by the workers. False: it has ended, or was canceled
    before."""
    author = author_of(by, via, reason)
    found = yield from flow(flow_id)
    done = yield from flow_actions.cancel_flow(flow_id, author)
    if done and (yield from _job_count(found)) <= _AT_ONCE:
        yield from act.advance_flows([flow_id])
    return done


def _job_count(flow: Flow) -> Verb[int]:
    """That of a workflow with the jobs of its groups."""
    total = flow.counts.total
    if flow.kind is FlowKind.WORKFLOW and total <= _AT_ONCE:
        nodes = yield from workflows.flow_nodes(flow.id)
        groups = yield from flow_verbs.read_flows([each.part for each in nodes if each.part])
        total += sum(group.counts.total for group in groups.values())
    return total


def retry_flow(flow_id: int, *, by: str, reason: str | None = None, via: str = PYTHON) -> Verb[int]:
    """Run what failed or was canceled again. Returns how many jobs."""
    author = author_of(by, via, reason)
    yield from flow(flow_id)
    return (yield from flow_actions.retry_flow(flow_id, author))


def seal_flow(flow_id: int, *, by: str, reason: str | None = None, via: str = PYTHON) -> Verb[bool]:
    """Seal: no producer adds members any more. False: it was sealed before."""
    author = author_of(by, via, reason)
    found = yield from flow(flow_id)
    if found.sealed_at is not None:
        yield from queries.wait_for_standbys()
        return False
    return (yield from flow_verbs.seal_flow(flow_id, author))


class FlowActions:
    """What both operators offer of flows."""

    flows = method(list_flows)
    flow_page = method(flow_page)
    flow = method(flow)
    flow_detail = method(flow_detail)
    nodes_of_flow = method(nodes_of_flow)
    flow_members = method(members)
    flow_load = method(flow_verbs.flow_load)
    cancel_flow = method(cancel_flow)
    retry_flow = method(retry_flow)
    seal_flow = method(seal_flow)
