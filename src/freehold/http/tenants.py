"""Tenants: who there is, and what whoever is over all of them does with one.

A token of one tenant sees that tenant's line and no other, and changes nothing here: a tenant
that was paused by its landlord must not let itself go on. Moving and migrating take longer than
a request may: they are for the command line.
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
    EmptyBody,
    NewTenantBody,
    TenantPath,
    TenantShareBody,
)
from freehold.http_auth import Role
from freehold.model.tenant import Tenant

routes = Routes()


class TenantListBody(msgspec.Struct, frozen=True):
    """By name. To a token of one tenant: that one."""

    now: datetime
    tenants: list[Tenant]


class TenantBody(msgspec.Struct, frozen=True):
    """``what``: done, or already so."""

    name: str
    what: str


@routes.get("/api/tenants", Role.VIEWER, answers={200: TenantListBody})
async def list_tenants(asked: ApiRequest) -> TenantListBody:
    """Tenants: where they live, how they stand, and their share of the workers."""
    found = await asyncio.to_thread(asked.service.app.tenants.all)
    seen = [each for each in found if asked.caller.tenant in (None, each.name)]
    return TenantListBody(await asked.service.app.aoperate.now(), seen)


@routes.get(
    "/api/tenants/{tenant}",
    Role.VIEWER,
    whose=TenantScope.NAMED,
    path=TenantPath,
    answers={200: Tenant},
)
async def show_tenant(asked: ApiRequest) -> Tenant:
    """One tenant."""
    return await asyncio.to_thread(asked.service.app.tenants.get, asked.path.tenant)


@routes.post(
    "/api/tenants",
    Role.ADMIN,
    whose=TenantScope.ALL,
    body=NewTenantBody,
    answers={201: Tenant},
    problems=(409,),
)
async def create_tenant(asked: ApiRequest) -> ApiResponse:
    """Make a tenant: its schema or file, then its line in the directory."""
    new: NewTenantBody = asked.body
    tenants = asked.service.app.tenants
    made = await asyncio.to_thread(tenants.create, new.name, new.place, new.weight, new.max_slots)
    return ApiResponse(201, made)


@routes.post(
    "/api/tenants/{tenant}/pause",
    Role.OPERATOR,
    whose=TenantScope.ALL,
    path=TenantPath,
    body=ActionBody,
    answers={200: TenantBody},
    problems=(409,),
)
async def pause_tenant(asked: ApiRequest) -> TenantBody:
    """Nothing of the tenant is claimed until it is resumed. What runs goes on."""
    name: str = asked.path.tenant
    await asyncio.to_thread(asked.service.app.tenants.pause, name, asked.by, asked.body.reason)
    return TenantBody(name, "done")


@routes.post(
    "/api/tenants/{tenant}/resume",
    Role.OPERATOR,
    whose=TenantScope.ALL,
    path=TenantPath,
    body=EmptyBody,
    answers={200: TenantBody},
    problems=(409,),
)
async def resume_tenant(asked: ApiRequest) -> TenantBody:
    """Let a paused tenant go on; also one that was found broken and is mended."""
    name: str = asked.path.tenant
    stood_still = await asyncio.to_thread(asked.service.app.tenants.resume, name)
    return TenantBody(name, "done" if stood_still else "already")


@routes.post(
    "/api/tenants/{tenant}/weigh",
    Role.ADMIN,
    whose=TenantScope.ALL,
    path=TenantPath,
    body=TenantShareBody,
    answers={200: TenantBody},
)
async def set_tenant_weight(asked: ApiRequest) -> TenantBody:
    """Give a tenant its share of the workers, beside 1 for every other one."""
    name: str = asked.path.tenant
    share: TenantShareBody = asked.body
    await asyncio.to_thread(asked.service.app.tenants.weigh, name, share.weight, share.max_slots)
    return TenantBody(name, "done")


@routes.post(
    "/api/tenants/{tenant}/drop",
    Role.ADMIN,
    whose=TenantScope.ALL,
    path=TenantPath,
    body=DropTenantBody,
    answers={200: TenantBody},
    problems=(409,),
)
async def drop_tenant(asked: ApiRequest) -> TenantBody:
    """Remove a tenant with everything it has. Its name is asked for once more."""
    name: str = asked.path.tenant
    body: DropTenantBody = asked.body
    if body.name != name:
        raise BadInput(f"to drop tenant {name} say its name in the body too, not {body.name!r}")
    await asyncio.to_thread(asked.service.app.tenants.drop, name, force=body.force)
    return TenantBody(name, "done")
