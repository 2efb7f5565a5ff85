"""What a manager of hosts reads: the ready jobs of all tenants as one set of queues, and its hosts.

One statement for each shard finds the tenants that have work. Only their queues are read, and only
until there is more than all hosts together can run: a larger number would change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from freehold.errors import FreeholdError, StoreError
from freehold.model.explain import PauseInfo
from freehold.model.tenant import Tenant, TenantState
from freehold.model.worker_info import LiveWorker
from freehold.store.store import AsyncStore
from freehold.store.types import QueueInfo
from freehold.telemetry import log
from freehold.tenants.served_tenants import ServedTenants


class TenantBacklog:
    """Read by one manager. ``enough``: the slots of all hosts together."""

    def __init__(self, served: ServedTenants, enough: int) -> None:
        self._served = served
        self._enough = enough
        #: The tenants whose leases of a dead host are ended already: all can take several calls.
        self._handed_back: dict[str, set[str]] = {}

    async def queues(self) -> list[QueueInfo]:
        found: dict[str, QueueInfo] = {}
        for tenant in await self._tenants_with_work():
            store = AsyncStore(self._served.shard(tenant.shard).open(tenant.name).async_session())
            try:
                if await store.pause_of_all() is None:
                    _add(found, await store.queues())
            except StoreError as error:  # the hosts degrade a broken tenant
                log.debug("the backlog of tenant %s cannot be read: %s", tenant.name, error)
            if sum(queue.ready for queue in found.values()) >= self._enough:
                break
        return list(found.values())

    async def _tenants_with_work(self) -> list[Tenant]:
        by_shard: dict[str, dict[str, Tenant]] = {}
        for tenant in await self._served.tenants():
            if tenant.state is TenantState.ACTIVE:
                by_shard.setdefault(tenant.shard, {})[tenant.name] = tenant
        found: list[Tenant] = []
        for name, tenants in by_shard.items():
            try:
                checked = await self._served.shard(name).tenants_with_work(list(tenants))
            except StoreError as error:  # the tenants of other shards have work all the same
                log.debug("the tenants of shard %s cannot be read: %s", name, error)
                continue
            found += [tenants[each.tenant] for each in checked if each.has_work]
        return found

    async def pause_of_all(self) -> PauseInfo | None:
        """A tenant whose queues are all paused adds nothing to `queues`."""
        return None

    async def workers(self) -> list[LiveWorker]:
        return await self._served.control.workers()

    async def expire_leases(self, owner: str) -> int:
        """Of all workers of a host, in the stores of their tenants. A tenant that is not reachable
        waits until they expire."""
        done, ended = self._handed_back.setdefault(owner, set()), 0
        for tenant in await self._served.tenants():
            if tenant.name in done:
                continue
            try:
                shard = self._served.shard(tenant.shard)
                ended += await AsyncStore(shard.open(tenant.name).async_session()).expire_leases(
                    owner
                )
            except FreeholdError as error:
                log.debug("the leases in tenant %s cannot be ended: %s", tenant.name, error)
            done.add(tenant.name)
        del self._handed_back[owner]
        return ended

    async def remove_worker(self, owner: str) -> None:
        await self._served.control.remove_worker(owner)

    async def record_scaling(self, manager: str, before: int, after: int, reason: str) -> None:
        await self._served.control.record_scaling(manager, before, after, reason)

    async def now(self) -> datetime:
        return await self._served.control.now()


def _add(found: dict[str, QueueInfo], queues: Iterable[QueueInfo]) -> None:
    """Ready jobs as far as each tenant's limits let them run; paused queues have none."""
    for queue in queues:
        if queue.paused:
            continue
        before = found.get(queue.name)
        oldest = [
            each.oldest_ready_at
            for each in (before, queue)
            if each is not None and each.oldest_ready_at is not None
        ]
        found[queue.name] = QueueInfo(
            name=queue.name,
            ready=queue.claimable + (before.ready if before else 0),
            leased=queue.leased + (before.leased if before else 0),
            not_ready=queue.not_ready + (before.not_ready if before else 0),
            oldest_ready_at=min(oldest, default=None),
            paused_at=None,
            paused_by=None,
            pause_reason=None,
            paused_until=None,
        )
