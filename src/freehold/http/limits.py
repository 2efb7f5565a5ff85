"""Limits and weights, by who may change them: an admin."""

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
    """Every limit: of queues (``*`` is all of them together), of limit keys, and the one that the
    tenants of the database share."""

    queues: list[NamedLimit]
    keys: list[NamedLimit]
    shared: LimitUse | None = None


@routes.get("/api/limits", Role.VIEWER, answers={200: LimitListBody})
async def list_limits(asked: ApiRequest) -> LimitListBody:
    """How many may run at a time, and how many may start within a time."""
    operate = asked.operate
    return LimitListBody(
        await operate.queue_limits(), await operate.key_limits(), await operate.shared_use()
    )


@routes.post(
    "/api/limits/queues/{name}",
    Role.ADMIN,
    path=QueuePath,
    body=LimitBody,
    answers={200: NamedLimit},
)
async def limit_queue(asked: ApiRequest) -> NamedLimit:
    """Limit a queue; an empty limit lifts it."""
    return await _limit_queue(asked, asked.path.name)


@routes.post(
    "/api/limits/all", Role.ADMIN, body=LimitBody, answers={200: NamedLimit}, problems=(409,)
)
async def limit_all(asked: ApiRequest) -> NamedLimit:
    """Limit all queues together; an empty limit lifts it."""
    return await _limit_queue(asked, ALL_QUEUES)


@routes.post(
    "/api/limits/keys/{key}", Role.ADMIN, path=KeyPath, body=LimitBody, answers={200: NamedLimit}
)
async def limit_key(asked: ApiRequest) -> NamedLimit:
    """Limit jobs that share a limit_key; ``github:*`` is every key that begins so."""
    rule = NamedLimit(asked.path.key, _limit_of(asked.body))
    await asked.operate.set_key_limit(rule.name, rule.limit)
    return rule


@routes.post(
    "/api/queues/{name}/weigh",
    Role.ADMIN,
    path=QueuePath,
    body=WeightBody,
    answers={200: WeightBody},
)
async def set_queue_weight(asked: ApiRequest) -> WeightBody:
    """Give a queue its share of the workers, beside 1 for every other one."""
    weight: WeightBody = asked.body
    await asked.operate.set_weight(asked.path.name, weight.weight)
    return weight


async def _limit_queue(asked: ApiRequest, name: str) -> NamedLimit:
    rule = NamedLimit(name, _limit_of(asked.body))
    await asked.operate.set_queue_limit(name, rule.limit)
    return rule


def _limit_of(body: LimitBody) -> Limit:
    return Limit(body.max, None if body.rate is None else rate_of(body.rate))
