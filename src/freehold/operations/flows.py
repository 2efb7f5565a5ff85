"""Batches and workflows as operators see them."""

from __future__ import annotations

from typing import TypeVar

from freehold.errors import BadInput
from freehold.model.audit import PYTHON
from freehold.model.flow import Flow, FlowKind, FlowNode, FlowState
from freehold.operations.input_checks import author_of
from freehold.store.statements import Verb, method
from freehold.store.types import PAGE_LIMIT
from freehold.store.verbs import flow_actions, flows, workflows

E = TypeVar("E", FlowKind, FlowState)


def list_flows(
    *,
    kind: FlowKind | str | None = None,
    state: FlowState | str | None = None,
    before: int | None = None,
    limit: int = 50,
) -> Verb[list[Flow]]:
    """Batches, gathers and workflows, newest first. ``before``: the last id of the page before."""
    if not 1 <= limit <= PAGE_LIMIT:
        raise BadInput(f"limit={limit}: a page has 1 to {PAGE_LIMIT} flows")
    chosen_kind = None if kind is None else _chosen(FlowKind, "kind", kind)
    chosen_state = None if state is None else _chosen(FlowState, "state", state)
    return flows.flows(limit, before, chosen_kind, chosen_state)


def _chosen(kinds: type[E], what: str, value: object) -> E:
    if value in list(kinds):
        return kinds(str(value))
    raise BadInput(f"{what}={value!r}: choose one of {', '.join(kinds)}")


def flow(flow_id: int) -> Verb[Flow]:
    """One batch, gather, workflow or group. Raises FlowNotFound."""
    return flow_actions.existing_flow(flow_id)


def nodes_of_flow(flow_id: int) -> Verb[list[FlowNode]]:
    """The nodes of a workflow with their states; none for other flows."""
    return workflows.flow_nodes(flow_id)


def cancel_flow(
    flow_id: int, *, by: str, reason: str | None = None, via: str = PYTHON
) -> Verb[bool]:
    """Cancel all members that have not ended. False: the flow has ended, or was canceled before."""
    return flow_actions.cancel_flow(flow_id, author_of(by, via, reason))


def retry_flow(flow_id: int, *, by: str, reason: str | None = None, via: str = PYTHON) -> Verb[int]:
    """Run what failed or was canceled again. Returns how many jobs."""
    return flow_actions.retry_flow(flow_id, author_of(by, via, reason))


def seal_flow(flow_id: int) -> Verb[bool]:
    """Of a batch whose producer is gone: nothing is added any more. False: it was sealed before."""
    return flows.seal_flow(flow_id)


class FlowActions:
    flows = method(list_flows)
    flow = method(flow)
    nodes_of_flow = method(nodes_of_flow)
    cancel_flow = method(cancel_flow)
    retry_flow = method(retry_flow)
    seal_flow = method(seal_flow)
