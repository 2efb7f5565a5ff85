"""Limits and weights. Only an admin may change them."""

from __future__ import annotations

import msgspec

from freehold.http.request import ApiRequest
from freehold.http.routes import Routes
from freehold.http.schemas import KeyPath, LimitBody, QueuePath, WeightBody
from freehold.http_auth import Role
from freehold.model.explain import LimitUse
from freehold.model.limit import ALL_QUEUES, Limit, rate_of
from freehold.store.types import NamedLimit

routes = Routes()


class LimitListBody(msgspec.Struct, frozen=True):
    """The limits of queues (``*`` is all of them together), those of limit keys, and the one that
    the tenants of the database share. A token or an API of one tenant sees only that tenant's use
    of the shared one."""

    queues: list[NamedLimit]
    keys: list[NamedLimit]
    shared: LimitUse | None = None


@routes.get("/api/limits", Role.VIEWER, responses={200: LimitListBody})
async def list_limits(request: ApiRequest) -> LimitListBody:
    """List limits on the number of running jobs and on the rate of starts."""
    operator = request.operator
    shared = await operator.shared_use()
    if shared is not None and request.tenant is not None:
        shared = shared.of_tenant(request.tenant)
    return LimitListBody(await operator.queue_limits(), await operator.key_limits(), shared)


@routes.post(
    "/api/limits/queues/{name}",
    Role.ADMIN,
    path=QueuePath,
    body=LimitBody,
    responses={200: NamedLimit},
)
async def limit_queue(request: ApiRequest) -> NamedLimit:
    """Limit a queue. An empty limit removes it."""
    return await _limit_queue(request, request.path.name)


@routes.post(
    "/api/limits/all", Role.ADMIN, body=LimitBody, responses={200: NamedLimit}, problems=(409,)
)
async def limit_all(request: ApiRequest) -> NamedLimit:
    """Limit all queues together. An empty limit removes it."""
    return await _limit_queue(request, ALL_QUEUES)


@routes.post(
    "/api/limits/keys/{key}", Role.ADMIN, path=KeyPath, body=LimitBody, responses={200: NamedLimit}
)
async def limit_key(request: ApiRequest) -> NamedLimit:
    """Limit the jobs that share a limit_key. ``github:*`` sets one limit for each key that begins
    so."""
    rule = NamedLimit(request.path.key, _limit_of(request.body))
    await request.operator.set_key_limit(rule.name, rule.limit, request.by, request.body.reason)
    return rule


@routes.post(
    "/api/queues/{name}/set_weight",
    Role.ADMIN,
    path=QueuePath,
    body=WeightBody,
    responses={200: WeightBody},
)
async def set_queue_weight(request: ApiRequest) -> WeightBody:
    """Set the weight of a queue, which is its share of the workers. The default is 1."""
    weight: WeightBody = request.body
    await request.operator.set_weight(request.path.name, weight.weight, request.by)
    return weight


async def _limit_queue(request: ApiRequest, name: str) -> NamedLimit:
    rule = NamedLimit(name, _limit_of(request.body))
    await request.operator.set_queue_limit(name, rule.limit, request.by, request.body.reason)
    return rule


def _limit_of(body: LimitBody) -> Limit:
    return Limit(body.max, None if body.rate is None else rate_of(body.rate))
