"""Writes the configured weights and limits of queues into the store before a worker claims.

They are tried when it starts, so that a wrong one ends it. If the store is away then, the claimer
writes them as soon as it is back: no job runs outside of a limit that is configured.

The limit of all queues (``*``) also holds over all tenants: it is written into the control store
only, never into the store of one tenant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from freehold.errors import BadInput, Refused
from freehold.model.audit import SETTINGS
from freehold.model.limit import ALL_QUEUES, QueueRule
from freehold.operator import AsyncOperator
from freehold.settings import Settings
from freehold.telemetry import log


class StoreSettings:
    """For a worker of one store: that of the app, or of a tenant."""

    def __init__(self, settings: Settings, operator: AsyncOperator, tenant: str | None) -> None:
        self._settings = settings
        self._operator = operator
        self._tenant = tenant
        self._is_applied = False

    async def apply(self) -> None:
        if self._is_applied:
            return
        if self._tenant is None:
            await _apply_queues(self._operator, self._settings.queues)
            await _apply_keys(self._operator, self._settings)
        else:
            await _apply_to_tenant(self._operator, self._settings)
        self._is_applied = True

    async def before_claims(self) -> None:
        """Settings that are refused only now must not end a worker that has started."""
        try:
            await self.apply()
        except (BadInput, Refused) as error:
            log.error("the configured limits are not written: %s", error)
            self._is_applied = True


async def _apply_to_tenant(operator: AsyncOperator, settings: Settings) -> None:
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
        self._is_applied_to_all = False
        self._applied: set[str] = set()

    async def apply_to_all(self) -> None:
        rule = self._settings.queues.get(ALL_QUEUES)
        if rule is not None and not self._is_applied_to_all:
            await _apply_queues(self._control, {ALL_QUEUES: rule})
        self._is_applied_to_all = True

    async def apply_to(self, tenant: str) -> None:
        """Called before each worker of the tenant, also if the control store was away at first."""
        await self.apply_to_all()
        if self._has_rules and tenant not in self._applied:
            await _apply_to_tenant(self._tenant(tenant), self._settings)
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
