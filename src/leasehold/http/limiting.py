"""Limits and weights, by who may change them: an admin."""

from __future__ import annotations

import msgspec

from leasehold.access import Role
from leasehold.http.asked import Asked
from leasehold.http.routes import Routes
from leasehold.http.shapes import KeyPath, QueuePath, SetLimit, SetWeight
from leasehold.model.explain import Use
from leasehold.model.limit import ALL_QUEUES, Limit, rate_of
from leasehold.store.contract import Rule

routes = Routes()


class LimitList(msgspec.Struct, frozen=True):
    """Every limit: of queues (``*`` is all of them together), of limit keys, and the one that the
    tenants of the database share."""

    queues: list[Rule]
    keys: list[Rule]
    shared: Use | None = None


@routes.get("/api/limits", Role.VIEWER, answers={200: LimitList})
async def list_limits(asked: Asked) -> LimitList:
    """How many may run at a time, and how many may start within a time."""
    operate = asked.operate
    return LimitList(
        await operate.queue_limits(), await operate.key_limits(), await operate.shared_use()
    )


@routes.post("/api/limits/queues/{name}", Role.ADMIN, path=QueuePath, body=SetLimit,
             answers={200: Rule})  # fmt: skip
async def limit_queue(asked: Asked) -> Rule:
    """Limit a queue; an empty limit lifts it."""
    return await _limit_queue(asked, asked.path.name)


@routes.post("/api/limits/all", Role.ADMIN, body=SetLimit, answers={200: Rule}, problems=(409,))
async def limit_all(asked: Asked) -> Rule:
    """Limit all queues together; an empty limit lifts it."""
    return await _limit_queue(asked, ALL_QUEUES)


@routes.post("/api/limits/keys/{key}", Role.ADMIN, path=KeyPath, body=SetLimit,
             answers={200: Rule})  # fmt: skip
async def limit_key(asked: Asked) -> Rule:
    """Limit jobs that share a limit_key; ``github:*`` is every key that begins so."""
    rule = Rule(asked.path.key, _limit_of(asked.body))
    await asked.operate.set_key_limit(rule.name, rule.limit)
    return rule


@routes.post("/api/queues/{name}/weigh", Role.ADMIN, path=QueuePath, body=SetWeight,
             answers={200: SetWeight})  # fmt: skip
async def weigh_queue(asked: Asked) -> SetWeight:
    """Give a queue its share of the workers, beside 1 for every other one."""
    weight: SetWeight = asked.body
    await asked.operate.set_weight(asked.path.name, weight.weight)
    return weight


async def _limit_queue(asked: Asked, name: str) -> Rule:
    rule = Rule(name, _limit_of(asked.body))
    await asked.operate.set_queue_limit(name, rule.limit)
    return rule


def _limit_of(body: SetLimit) -> Limit:
    return Limit(body.max, None if body.rate is None else rate_of(body.rate))
