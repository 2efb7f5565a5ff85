"""Batches, gathers and workflows: lists, one with its graph and members; cancel, retry, seal."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from freehold.dashboard.forms import ReasonForm
from freehold.dashboard.graph import NODES_DRAWN, graph_picture
from freehold.dashboard.page_request import Page, PageRequest, Redirect
from freehold.errors import BadInput
from freehold.http.routes import Routes
from freehold.http.schemas import Id, JobPath, value_or_none
from freehold.http_auth import Role
from freehold.model.flow import Flow, FlowKind, FlowState
from freehold.model.flow_graph import flow_state
from freehold.model.state import State
from freehold.operations.input_checks import LARGEST_ID

routes = Routes()
_SHOWN = 50
_PLURAL = {FlowKind.BATCH: "batches", FlowKind.GATHER: "gathers", FlowKind.WORKFLOW: "workflows"}


class FlowListPageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``before``: the ``next`` of the page before."""

    state: FlowState | UnsetType = UNSET
    before: Id | UnsetType = UNSET


class BatchListPageQuery(FlowListPageQuery, frozen=True, forbid_unknown_fields=True):
    kind: Literal["batch", "gather"] = "batch"


class FlowPageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``state`` and ``after``: of the members; ``node``: the number before the first one."""

    state: State | UnsetType = UNSET
    after: Annotated[int, Meta(ge=0, le=LARGEST_ID)] = 0
    node: Annotated[int, Meta(ge=0, le=LARGEST_ID)] = 0


@routes.get("/batches", Role.VIEWER, query=BatchListPageQuery, responses={200: str})
async def batch_list(request: PageRequest) -> Page:
    """Batches or gathers, newest first."""
    kind = FlowKind(request.query.kind)
    command = ["batches"] if kind is FlowKind.BATCH else ["flows", "--kind=gather"]
    return await _list(request, kind, "Batches", command)


@routes.get("/workflows", Role.VIEWER, query=FlowListPageQuery, responses={200: str})
async def workflow_list(request: PageRequest) -> Page:
    """Workflows, newest first."""
    return await _list(request, FlowKind.WORKFLOW, "Workflows", ["flows", "--kind=workflow"])


async def _list(request: PageRequest, kind: FlowKind, section: str, command: list[str]) -> Page:
    state = value_or_none(request.query.state)
    before = value_or_none(request.query.before)
    found = await request.operator.flow_page(kind=kind, state=state, before=before, limit=_SHOWN)
    states = [] if state is None else [f"--state={state.value}"]
    return Page(
        template="flows.html",
        title=_PLURAL[kind].capitalize(),
        section=section,
        values={
            "flows": found.flows,
            "next": found.next,
            "kind": kind,
            "path": section.lower(),
            "chosen": state,
            "states": list(FlowState),
            "is_first": before is None,
        },
        command=request.command_line(*command, *states),
        topics=(_PLURAL[kind],),
    )


@routes.get("/flows/{id}", Role.VIEWER, path=JobPath, query=FlowPageQuery, responses={200: str})
async def flow_page(request: PageRequest) -> Page:
    """One flow: its counts, callbacks, graph and members."""
    flow_id, query = request.path.id, request.query
    detail = await request.operator.flow_detail(flow_id)
    flow, nodes = detail.flow, detail.nodes
    chosen = value_or_none(query.state)
    states = () if chosen is None else (chosen,)
    shown = [node for node in nodes if node.number > query.node][:NODES_DRAWN]
    return Page(
        template="flow.html",
        title=_name(flow),
        section="Workflows" if flow.kind in (FlowKind.WORKFLOW, FlowKind.GROUP) else "Batches",
        values={
            "flow": flow,
            "callbacks": detail.callbacks,
            "nodes": shown,
            "more_nodes": bool(shown) and shown[-1].number < nodes[-1].number,
            "names": {node.number: node.name for node in nodes},
            "picture": graph_picture(nodes),
            "held": sum(node.state == "held" for node in nodes),
            "members": await request.operator.flow_members(flow_id, query.after, _SHOWN, states),
            "query": query,
            "chosen": chosen,
            "states": list(State),
            "unit": "node" if flow.kind is FlowKind.WORKFLOW else "job",
            "can": _possible(flow),
        },
        command=request.command_line("flow", "show", flow_id),
        topics=(f"flow-{flow_id}",),
    )


def _name(flow: Flow) -> str:
    return f"{flow.kind.capitalize()} {flow.id}: {flow.name}"


def _possible(flow: Flow) -> set[str]:
    """The actions that would change something."""
    is_canceling = flow_state(flow) == "canceling"
    found = set()
    if flow.state is FlowState.OPEN and not is_canceling:
        found.add("cancel")
    if (flow.counts.failed or flow.counts.canceled) and not is_canceling:
        found.add("retry")
    if flow.sealed_at is None and flow.state is FlowState.OPEN:
        found.add("seal")
    return found


@routes.post(
    "/flows/{id}/cancel", Role.OPERATOR, path=JobPath, body=ReasonForm, responses={303: str}
)
async def cancel_flow(request: PageRequest) -> Redirect:
    """Waiting jobs are canceled soon; running ones are asked to stop."""
    number, reason = request.path.id, request.body.reason
    if not reason:
        raise BadInput("Give a reason: a cancel of a batch or workflow needs one")
    done = await request.operator.cancel_flow(number, by=request.by, reason=reason)
    flow = await request.operator.flow(number)
    state = "being canceled" if flow.state is FlowState.OPEN else flow.state.value
    return _back(request, flow, f"is {state}" if done else f"was already {state}")


@routes.post(
    "/flows/{id}/retry", Role.OPERATOR, path=JobPath, body=ReasonForm, responses={303: str}
)
async def retry_flow(request: PageRequest) -> Redirect:
    """What failed or was canceled runs again."""
    number = request.path.id
    jobs = await request.operator.retry_flow(number, by=request.by, reason=request.body.reason)
    flow = await request.operator.flow(number)
    found = f"{jobs:,} {'job' if jobs == 1 else 'jobs'} to run again"
    return _back(request, flow, f"has {found}" if jobs else "has no failed or canceled job")


@routes.post("/flows/{id}/seal", Role.OPERATOR, path=JobPath, body=ReasonForm, responses={303: str})
async def seal_flow(request: PageRequest) -> Redirect:
    """No producer adds jobs any more."""
    number = request.path.id
    done = await request.operator.seal_flow(number, by=request.by, reason=request.body.reason)
    flow = await request.operator.flow(number)
    return _back(request, flow, "is sealed" if done else "was already sealed")


def _back(request: PageRequest, flow: Flow, what: str) -> Redirect:
    return Redirect(request.url("flows", flow.id), f"{flow.kind.capitalize()} {flow.id} {what}.")
