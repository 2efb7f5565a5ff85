"""Tenants: where they are, their state and share; pause, resume, weight."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta

from freehold.dashboard.forms import ReasonForm
from freehold.dashboard.page_request import Page, PageRequest, Redirect
from freehold.http.auth import TenantScope
from freehold.http.routes import Routes
from freehold.http.schemas import Reason, TenantPath, WeightValue
from freehold.http_auth import Role
from freehold.model.audit import DASHBOARD

routes = Routes()


class ShareForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    weight: WeightValue
    max_slots: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    reason: Reason | None = None


@routes.get("/tenants", Role.VIEWER, responses={200: str})
async def tenant_list(request: PageRequest) -> Page:
    """Tenants by name. A caller of one tenant sees only that one."""
    found = await asyncio.to_thread(request.service.app.tenants.all)
    return Page(
        template="tenants.html",
        title="Tenants",
        section="Tenants",
        values={
            "tenants": [each for each in found if request.tenant in (None, each.name)],
            "is_of_all": request.tenant is None,
        },
        command="freehold tenants",
    )


@routes.post(
    "/tenants/{tenant}/pause",
    Role.OPERATOR,
    scope=TenantScope.ALL,
    path=TenantPath,
    body=ReasonForm,
    responses={303: str},
)
async def pause_tenant(request: PageRequest) -> Redirect:
    """Its jobs are not claimed; running jobs continue."""
    name, tenants = request.path.tenant, request.service.app.tenants
    await asyncio.to_thread(tenants.pause, name, request.by, request.body.reason, DASHBOARD)
    return Redirect(request.url("tenants"), f"Tenant {name} is paused.")


@routes.post(
    "/tenants/{tenant}/resume",
    Role.OPERATOR,
    scope=TenantScope.ALL,
    path=TenantPath,
    body=ReasonForm,
    responses={303: str},
)
async def resume_tenant(request: PageRequest) -> Redirect:
    name, tenants = request.path.tenant, request.service.app.tenants
    await asyncio.to_thread(tenants.resume, name, request.author)
    return Redirect(request.url("tenants"), f"Tenant {name} is resumed.")


@routes.post(
    "/tenants/{tenant}/weight",
    Role.ADMIN,
    scope=TenantScope.ALL,
    path=TenantPath,
    body=ShareForm,
    responses={303: str},
)
async def weigh_tenant(request: PageRequest) -> Redirect:
    name, form, tenants = request.path.tenant, request.body, request.service.app.tenants
    await asyncio.to_thread(tenants.set_weight, name, form.weight, form.max_slots, request.author)
    return Redirect(request.url("tenants"), f"Tenant {name} has the weight {form.weight:g}.")
