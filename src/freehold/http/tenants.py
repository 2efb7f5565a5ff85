"""Tenants: list, create, pause, weight and drop them.

A token of one tenant sees only that tenant and changes nothing here: a paused tenant must not be
able to resume itself. The same holds for an API of one tenant, whatever the token. Moves and
migrations take longer than a request may; the command line has them.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

import msgspec

from freehold.errors import BadInput
from freehold.http.auth import TenantScope
from freehold.http.request import ApiRequest, ApiResponse
from freehold.http.routes import Routes
from freehold.http.schemas import (
    ActionBody,
    DropTenantBody,
    NewTenantBody,
    TenantPath,
    TenantShareBody,
)
from freehold.http_auth import Role
from freehold.model.audit import HTTP
from freehold.model.operator_actions import ActionStatus
from freehold.model.tenant import Tenant

routes = Routes()


class TenantListBody(msgspec.Struct, frozen=True):
    """Tenants by name. A token or an API of one tenant returns only that one."""

    now: datetime
    tenants: list[Tenant]


class TenantBody(msgspec.Struct, frozen=True):
    """``status``: done, or already so."""

    name: str
    status: ActionStatus


@routes.get("/api/tenants", Role.VIEWER, responses={200: TenantListBody})
async def list_tenants(request: ApiRequest) -> TenantListBody:
    """List tenants with their shard, state, and share of the workers."""
    found = await asyncio.to_thread(request.service.app.tenants.all)
    seen = [each for each in found if request.tenant in (None, each.name)]
    return TenantListBody(await request.service.app.aoperator.now(), seen)


@routes.get(
    "/api/tenants/{tenant}",
    Role.VIEWER,
    scope=TenantScope.NAMED,
    path=TenantPath,
    responses={200: Tenant},
)
async def show_tenant(request: ApiRequest) -> Tenant:
    """Show one tenant."""
    return await asyncio.to_thread(request.service.app.tenants.get, request.path.tenant)


@routes.post(
    "/api/tenants",
    Role.ADMIN,
    scope=TenantScope.ALL,
    body=NewTenantBody,
    responses={201: Tenant},
    problems=(409,),
)
async def create_tenant(request: ApiRequest) -> ApiResponse:
    """Create a tenant: its schema or file, then its row in the directory."""
    new: NewTenantBody = request.body
    tenants = request.service.app.tenants
    tenant = await asyncio.to_thread(
        tenants.create, new.name, new.shard, new.weight, new.max_slots, author=request.author
    )
    return ApiResponse(201, tenant)


@routes.post(
    "/api/tenants/{tenant}/pause",
    Role.OPERATOR,
    scope=TenantScope.ALL,
    path=TenantPath,
    body=ActionBody,
    responses={200: TenantBody},
    problems=(409,),
)
async def pause_tenant(request: ApiRequest) -> TenantBody:
    """Pause a tenant until it is resumed. Its jobs are not claimed; running jobs continue."""
    name: str = request.path.tenant
    await asyncio.to_thread(
        request.service.app.tenants.pause, name, request.by, request.body.reason, HTTP
    )
    return TenantBody(name, ActionStatus.DONE)


@routes.post(
    "/api/tenants/{tenant}/resume",
    Role.OPERATOR,
    scope=TenantScope.ALL,
    path=TenantPath,
    body=ActionBody,
    responses={200: TenantBody},
    problems=(409,),
)
async def resume_tenant(request: ApiRequest) -> TenantBody:
    """Resume a paused or degraded tenant. A degraded tenant must be repaired first."""
    name: str = request.path.tenant
    was_paused = await asyncio.to_thread(request.service.app.tenants.resume, name, request.author)
    return TenantBody(name, ActionStatus.DONE if was_paused else ActionStatus.ALREADY)


@routes.post(
    "/api/tenants/{tenant}/set_weight",
    Role.ADMIN,
    scope=TenantScope.ALL,
    path=TenantPath,
    body=TenantShareBody,
    responses={200: TenantBody},
)
async def set_tenant_weight(request: ApiRequest) -> TenantBody:
    """Set the weight of a tenant, which is its share of the workers. The default is 1."""
    name: str = request.path.tenant
    share: TenantShareBody = request.body
    await asyncio.to_thread(
        request.service.app.tenants.set_weight,
        name,
        share.weight,
        share.max_slots,
        request.author,
    )
    return TenantBody(name, ActionStatus.DONE)


@routes.post(
    "/api/tenants/{tenant}/drop",
    Role.ADMIN,
    scope=TenantScope.ALL,
    path=TenantPath,
    body=DropTenantBody,
    responses={200: TenantBody},
    problems=(409,),
)
async def drop_tenant(request: ApiRequest) -> TenantBody:
    """Drop a tenant with all its data. The body must repeat its name."""
    name: str = request.path.tenant
    body: DropTenantBody = request.body
    if body.name != name:
        raise BadInput(f"to drop tenant {name}, repeat its name in the body, not {body.name!r}")
    await asyncio.to_thread(
        request.service.app.tenants.drop, name, force=body.force, author=request.author
    )
    return TenantBody(name, ActionStatus.DONE)
