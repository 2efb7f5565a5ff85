"""Tenants: who there is, and what whoever is over all of them does with one.

A token of one tenant sees that tenant's line and no other, and changes nothing here: a tenant
that was paused by its landlord must not let itself go on. Moving and migrating take longer than
a request may: they are for the command line.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

import msgspec

from leasehold.access import Role
from leasehold.errors import BadInput
from leasehold.http.asked import Asked, Done
from leasehold.http.auth import Whose
from leasehold.http.routes import Routes
from leasehold.http.shapes import Act, DropTenant, NewTenant, Nothing, SetShare, TenantPath
from leasehold.model.tenant import Tenant

routes = Routes()


class TenantList(msgspec.Struct, frozen=True):
    """By name. To a token of one tenant: that one."""

    now: datetime
    tenants: list[Tenant]


class TenantAnswer(msgspec.Struct, frozen=True):
    """``what``: done, or already so."""

    name: str
    what: str


@routes.get("/api/tenants", Role.VIEWER, answers={200: TenantList})
async def list_tenants(asked: Asked) -> TenantList:
    """Tenants: where they live, how they stand, and their share of the workers."""
    found = await asyncio.to_thread(asked.service.app.tenants.all)
    seen = [each for each in found if asked.caller.tenant in (None, each.name)]
    return TenantList(await asked.service.app.aoperate.now(), seen)


@routes.get("/api/tenants/{tenant}", Role.VIEWER, whose=Whose.NAMED, path=TenantPath,
            answers={200: Tenant})  # fmt: skip
async def show_tenant(asked: Asked) -> Tenant:
    """One tenant."""
    return await asyncio.to_thread(asked.service.app.tenants.get, asked.path.tenant)


@routes.post("/api/tenants", Role.ADMIN, whose=Whose.ALL, body=NewTenant,
             answers={201: Tenant}, problems=(409,))  # fmt: skip
async def create_tenant(asked: Asked) -> Done:
    """Make a tenant: its schema or file, then its line in the directory."""
    new: NewTenant = asked.body
    tenants = asked.service.app.tenants
    made = await asyncio.to_thread(tenants.create, new.name, new.place, new.weight, new.max_slots)
    return Done(201, made)


@routes.post("/api/tenants/{tenant}/pause", Role.OPERATOR, whose=Whose.ALL, path=TenantPath,
             body=Act, answers={200: TenantAnswer}, problems=(409,))  # fmt: skip
async def pause_tenant(asked: Asked) -> TenantAnswer:
    """Nothing of the tenant is claimed until it is resumed. What runs goes on."""
    name: str = asked.path.tenant
    await asyncio.to_thread(asked.service.app.tenants.pause, name, asked.by, asked.body.reason)
    return TenantAnswer(name, "done")


@routes.post("/api/tenants/{tenant}/resume", Role.OPERATOR, whose=Whose.ALL, path=TenantPath,
             body=Nothing, answers={200: TenantAnswer}, problems=(409,))  # fmt: skip
async def resume_tenant(asked: Asked) -> TenantAnswer:
    """Let a paused tenant go on; also one that was found broken and is mended."""
    name: str = asked.path.tenant
    stood_still = await asyncio.to_thread(asked.service.app.tenants.resume, name)
    return TenantAnswer(name, "done" if stood_still else "already")


@routes.post("/api/tenants/{tenant}/weigh", Role.ADMIN, whose=Whose.ALL, path=TenantPath,
             body=SetShare, answers={200: TenantAnswer})  # fmt: skip
async def weigh_tenant(asked: Asked) -> TenantAnswer:
    """Give a tenant its share of the workers, beside 1 for every other one."""
    name: str = asked.path.tenant
    share: SetShare = asked.body
    await asyncio.to_thread(asked.service.app.tenants.weigh, name, share.weight, share.max_slots)
    return TenantAnswer(name, "done")


@routes.post("/api/tenants/{tenant}/drop", Role.ADMIN, whose=Whose.ALL, path=TenantPath,
             body=DropTenant, answers={200: TenantAnswer}, problems=(409,))  # fmt: skip
async def drop_tenant(asked: Asked) -> TenantAnswer:
    """Remove a tenant with everything it has. Its name is asked for once more."""
    name: str = asked.path.tenant
    body: DropTenant = asked.body
    if body.name != name:
        raise BadInput(f"to drop tenant {name} say its name in the body too, not {body.name!r}")
    await asyncio.to_thread(asked.service.app.tenants.drop, name, force=body.force)
    return TenantAnswer(name, "done")
