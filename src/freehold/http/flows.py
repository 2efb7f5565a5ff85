"""Batches, gathers and workflows: lists, one with its nodes, members; cancel, retry, seal."""

from __future__ import annotations

from datetime import datetime

import msgspec

from freehold.http.request import ApiRequest
from freehold.http.routes import Routes
from freehold.http.schemas import (
    ActionBody,
    FlowListQuery,
    FlowMembersQuery,
    JobPath,
    value_or_none,
)
from freehold.http_auth import Role
from freehold.json_views import JobDocument, job_document
from freehold.model.flow import Flow
from freehold.model.flow_graph import FlowCallback, NodeInfo
from freehold.model.operator_actions import ActionStatus

routes = Routes()


class FlowListBody(msgspec.Struct, frozen=True):
    """Newest first. ``next`` is the ``before`` of the next page, null after the last; a page with a
    rare filter can be empty and have one."""

    now: datetime
    flows: tuple[Flow, ...]
    next: int | None


class FlowBody(msgspec.Struct, frozen=True):
    """A flow and the jobs that follow it."""

    now: datetime
    flow: Flow
    callbacks: list[FlowCallback]


class MemberListBody(msgspec.Struct, frozen=True):
    """In the order of ids. ``next`` is the ``after`` of the next page, null after the last; a page
    with a rare state can be empty and have one."""

    jobs: list[JobDocument]
    next: int | None


class FlowActionBody(msgspec.Struct, frozen=True):
    """``status``: done, or already so."""

    id: int
    status: ActionStatus


class RetriedFlowBody(msgspec.Struct, frozen=True):
    """How many jobs will run again."""

    id: int
    jobs: int


@routes.get("/api/flows", Role.VIEWER, query=FlowListQuery, responses={200: FlowListBody})
async def list_flows(request: ApiRequest) -> FlowListBody:
    """List batches, gathers and workflows with their counts, newest first, in pages. The groups of
    a workflow are nodes of it."""
    query: FlowListQuery = request.query
    found = await request.operator.flow_page(
        kind=value_or_none(query.kind),
        state=value_or_none(query.state),
        before=value_or_none(query.before),
        limit=query.limit,
    )
    return FlowListBody(await request.operator.now(), found.flows, found.next)


@routes.get("/api/flows/{id}", Role.VIEWER, path=JobPath, responses={200: FlowBody})
async def show_flow(request: ApiRequest) -> FlowBody:
    """Show a batch, gather or workflow with its counts and callbacks."""
    detail = await request.operator.flow_detail(request.path.id)
    return FlowBody(await request.operator.now(), detail.flow, detail.callbacks)


@routes.get("/api/flows/{id}/nodes", Role.VIEWER, path=JobPath, responses={200: list[NodeInfo]})
async def list_nodes(request: ApiRequest) -> list[NodeInfo]:
    """List the nodes of a workflow with their states and sources."""
    return (await request.operator.flow_detail(request.path.id)).nodes


@routes.get(
    "/api/flows/{id}/members",
    Role.VIEWER,
    path=JobPath,
    query=FlowMembersQuery,
    responses={200: MemberListBody},
)
async def list_members(request: ApiRequest) -> MemberListBody:
    """List the jobs of a flow, without their arguments, in pages."""
    query: FlowMembersQuery = request.query
    page = await request.operator.flow_members(
        request.path.id, query.after, query.limit, query.state
    )
    jobs = [job_document(job, show_args=False, show_trace=False) for job in page.jobs]
    return MemberListBody(jobs, page.next)


@routes.post(
    "/api/flows/{id}/cancel",
    Role.OPERATOR,
    path=JobPath,
    body=ActionBody,
    responses={200: FlowActionBody},
)
async def cancel_flow(request: ApiRequest) -> FlowActionBody:
    """Cancel all jobs of a flow that have not ended: waiting ones soon, by a worker; running ones
    are asked to stop."""
    done = await request.operator.cancel_flow(
        request.path.id, by=request.by, reason=request.body.reason
    )
    return _result(request.path.id, done)


@routes.post(
    "/api/flows/{id}/retry",
    Role.OPERATOR,
    path=JobPath,
    body=ActionBody,
    responses={200: RetriedFlowBody},
    problems=(409,),
)
async def retry_flow(request: ApiRequest) -> RetriedFlowBody:
    """Run the jobs of a flow again that failed or were canceled. A flow that is being canceled is
    refused."""
    jobs = await request.operator.retry_flow(
        request.path.id, by=request.by, reason=request.body.reason
    )
    return RetriedFlowBody(request.path.id, jobs)


@routes.post(
    "/api/flows/{id}/seal",
    Role.OPERATOR,
    path=JobPath,
    body=ActionBody,
    responses={200: FlowActionBody},
)
async def seal_flow(request: ApiRequest) -> FlowActionBody:
    """Seal a batch whose producer is gone. Its callbacks come when all its jobs have ended."""
    done = await request.operator.seal_flow(
        request.path.id, by=request.by, reason=request.body.reason
    )
    return _result(request.path.id, done)


def _result(flow_id: int, done: bool) -> FlowActionBody:
    return FlowActionBody(flow_id, ActionStatus.DONE if done else ActionStatus.ALREADY)
