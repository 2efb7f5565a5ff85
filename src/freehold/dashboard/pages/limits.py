"""Limits of queues, of all queues together, and of limit keys."""

from __future__ import annotations

from typing import Any

from freehold.dashboard.forms import LimitForm
from freehold.dashboard.page_request import Page, PageRequest, Redirect
from freehold.http.routes import Routes
from freehold.http.schemas import Key
from freehold.http_auth import Role
from freehold.model.limit import ALL_QUEUES
from freehold.store.types import NamedLimit

routes = Routes()
#: Of so many limits of each kind the use is read, each by a statement of its own.
_USES = 20


class KeyLimitForm(LimitForm, frozen=True, kw_only=True):
    key: Key


@routes.get("/limits", Role.VIEWER, responses={200: str})
async def limit_list(request: PageRequest) -> Page:
    """Limits on running jobs and on starts, with their use."""
    operator = request.operator
    shared = await operator.shared_use()
    if shared is not None and request.tenant is not None:
        shared = shared.of_tenant(request.tenant)
    queues, keys = await operator.queue_limits(), await operator.key_limits()
    return Page(
        template="limits.html",
        title="Limits",
        section="Limits",
        values={
            "queues": await _with_use(queues, operator.queue_use),
            "keys": await _with_use(keys, operator.key_use),
            "shared": shared,
            "all": next((each.limit for each in queues if each.name == ALL_QUEUES), None),
        },
        command=request.command_line("limits"),
        topics=("queues", "jobs"),
    )


async def _with_use(limits: list[NamedLimit], use: Any) -> list[tuple[NamedLimit, Any]]:
    """A pattern (``github:*``) is a limit of each of its keys, and has no use of its own."""
    found = []
    for number, each in enumerate(limits):
        has_use = number < _USES and (each.name == ALL_QUEUES or not each.name.endswith("*"))
        found.append((each, await use(each.name) if has_use else None))
    return found


@routes.post("/limits/all", Role.ADMIN, body=LimitForm, responses={303: str})
async def limit_all(request: PageRequest) -> Redirect:
    """Of all queues together."""
    form = request.body
    await request.operator.set_queue_limit(ALL_QUEUES, form.limit, request.by, form.reason)
    return Redirect(request.url("limits"), f"All queues together: {form.limit}.")


@routes.post("/limits/key", Role.ADMIN, body=KeyLimitForm, responses={303: str})
async def limit_key(request: PageRequest) -> Redirect:
    """Of the jobs with one limit key, or of each key that a pattern matches."""
    form: KeyLimitForm = request.body
    await request.operator.set_key_limit(form.key, form.limit, request.by, form.reason)
    return Redirect(request.url("limits"), f"Key {form.key}: {form.limit}.")
