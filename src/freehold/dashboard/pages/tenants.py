"""Tenants: where they are, their state and share; pause, resume, weight."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
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
#: A form that changes one tenant, for callers of all tenants.
_changing = partial(routes.post, scope=TenantScope.ALL, path=TenantPath, responses={303: str})


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


@_changing("/tenants/{tenant}/pause", Role.OPERATOR, body=ReasonForm)
async def pause_tenant(request: PageRequest) -> Redirect:
    """Its jobs are not claimed; running jobs continue."""
    pause = request.service.app.tenants.pause
    return await _change(
        request, pause, request.by, request.body.reason, DASHBOARD, done="is paused"
    )


@_changing("/tenants/{tenant}/resume", Role.OPERATOR, body=ReasonForm)
async def resume_tenant(request: PageRequest) -> Redirect:
    resume = request.service.app.tenants.resume
    return await _change(request, resume, request.author, done="is resumed")


@_changing("/tenants/{tenant}/weight", Role.ADMIN, body=ShareForm)
async def weigh_tenant(request: PageRequest) -> Redirect:
    form, set_weight = request.body, request.service.app.tenants.set_weight
    done = f"has the weight {form.weight:g}"
    return await _change(
        request, set_weight, form.weight, form.max_slots, request.author, done=done
    )


async def _change(
    request: PageRequest, verb: Callable[..., object], *given: object, done: str
) -> Redirect:
    """In a thread: the directory of tenants is written by blocking calls."""
    name = request.path.tenant
    await asyncio.to_thread(verb, name, *given)
    return Redirect(request.url("tenants"), f"Tenant {name} {done}.")
