"""Writes the configured weights and limits of queues into the store when a worker starts.

The limit of all queues (``*``) also holds over all tenants: it is written into the control store
only, never into the store of one tenant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from freehold.model.audit import SETTINGS
from freehold.model.limit import ALL_QUEUES, QueueRule
from freehold.operator import AsyncOperator
from freehold.settings import Settings


async def apply_settings(operator: AsyncOperator, settings: Settings) -> None:
    await _apply_queues(operator, settings.queues)
    await _apply_keys(operator, settings)


async def apply_to_tenant(operator: AsyncOperator, settings: Settings) -> None:
    queues = {name: rule for name, rule in settings.queues.items() if name != ALL_QUEUES}
    await _apply_queues(operator, queues)
    await _apply_keys(operator, settings)


class HostSettings:
    """For a host of many tenants. Most of them have no work: a tenant's store is written before its
    first worker of this process starts."""

    def __init__(
        self, settings: Settings, control: AsyncOperator, tenant: Callable[[str], AsyncOperator]
    ) -> None:
        self._settings = settings
        self._control = control
        self._tenant = tenant
        self._has_rules = bool(settings.limits or settings.queues.keys() - {ALL_QUEUES})
        self._applied: set[str] = set()

    async def apply_to_all(self) -> None:
        rule = self._settings.queues.get(ALL_QUEUES)
        await _apply_queues(self._control, {ALL_QUEUES: rule} if rule is not None else {})

    async def apply_to(self, tenant: str) -> None:
        if self._has_rules and tenant not in self._applied:
            await apply_to_tenant(self._tenant(tenant), self._settings)
            self._applied.add(tenant)


async def _apply_queues(operator: AsyncOperator, queues: Mapping[str, QueueRule]) -> None:
    """Writes only differences: setting a limit again would reset its count of starts."""
    if not queues:
        return
    weights = {queue.name: queue.weight for queue in await operator.queues(bound=1)}
    limits = {rule.name: rule.limit for rule in await operator.queue_limits()}
    for name, rule in queues.items():
        if rule.weight is not None and weights.get(name, 1.0) != rule.weight:
            await operator.set_weight(name, rule.weight, SETTINGS, via=SETTINGS)
        if rule.limit and limits.get(name) != rule.limit:
            await operator.set_queue_limit(name, rule.limit, SETTINGS, via=SETTINGS)


async def _apply_keys(operator: AsyncOperator, settings: Settings) -> None:
    if not settings.limits:
        return
    keys = {rule.name: rule.limit for rule in await operator.key_limits()}
    for key, limit in settings.limits.items():
        if keys.get(key) != limit:
            await operator.set_key_limit(key, limit, SETTINGS, via=SETTINGS)
