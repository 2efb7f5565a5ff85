"""What the configuration says about queues and limits, told to the store when a worker starts."""

from __future__ import annotations

from leasehold.operate import AwaitedOperate
from leasehold.settings import Settings


async def tell_rules(operate: AwaitedOperate, settings: Settings) -> None:
    """Only what differs: a limit that is set anew forgets how often it was used."""
    if not settings.queues and not settings.limits:
        return
    weights = {queue.name: queue.weight for queue in await operate.queues()}
    limits = {rule.name: rule.limit for rule in await operate.queue_limits()}
    keys = {rule.name: rule.limit for rule in await operate.key_limits()}
    for name, rule in settings.queues.items():
        if rule.weight is not None and weights.get(name, 1.0) != rule.weight:
            await operate.set_weight(name, rule.weight)
        if rule.limit and limits.get(name) != rule.limit:
            await operate.set_queue_limit(name, rule.limit)
    for key, limit in settings.limits.items():
        if keys.get(key) != limit:
            await operate.set_key_limit(key, limit)
