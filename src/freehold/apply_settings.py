"""What the configuration says about queues and limits, told to the store when a worker starts.

The limit of all queues (``*``) holds over all tenants too: it is told to the store that they share,
and never to one of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping

from freehold.model.limit import ALL_QUEUES, QueueRule
from freehold.operator import AsyncOperator
from freehold.settings import Settings


async def apply_settings(operate: AsyncOperator, settings: Settings) -> None:
    await _apply_queues(operate, settings.queues)
    await _apply_keys(operate, settings)


async def apply_to_tenant(operate: AsyncOperator, settings: Settings) -> None:
    queues = {name: rule for name, rule in settings.queues.items() if name != ALL_QUEUES}
    await _apply_queues(operate, queues)
    await _apply_keys(operate, settings)


async def apply_to_all_tenants(operate: AsyncOperator, settings: Settings) -> None:
    rule = settings.queues.get(ALL_QUEUES)
    await _apply_queues(operate, {ALL_QUEUES: rule} if rule is not None else {})


async def _apply_queues(operate: AsyncOperator, queues: Mapping[str, QueueRule]) -> None:
    """Only what differs: a limit that is set anew forgets how often it was used."""
    if not queues:
        return
    weights = {queue.name: queue.weight for queue in await operate.queues()}
    limits = {rule.name: rule.limit for rule in await operate.queue_limits()}
    for name, rule in queues.items():
        if rule.weight is not None and weights.get(name, 1.0) != rule.weight:
            await operate.set_weight(name, rule.weight)
        if rule.limit and limits.get(name) != rule.limit:
            await operate.set_queue_limit(name, rule.limit)


async def _apply_keys(operate: AsyncOperator, settings: Settings) -> None:
    if not settings.limits:
        return
    keys = {rule.name: rule.limit for rule in await operate.key_limits()}
    for key, limit in settings.limits.items():
        if keys.get(key) != limit:
            await operate.set_key_limit(key, limit)
