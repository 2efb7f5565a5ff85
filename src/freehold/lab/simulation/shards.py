"""A shard as one machine reaches it: over a link to each tenant's store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from freehold.errors import StoreError
from freehold.lab.simulation.network import Link
from freehold.store.database import Database
from freehold.store.shard import TenantActivity
from freehold.store.store import AsyncStore
from freehold.store.types import SweepCheck

#: Jobs that wait for a worker with other tasks, which the maintenance of a host looks for.
_LEFT_TO_MAINTENANCE = frozenset({"parked", "misfits"})


def is_work(found: SweepCheck) -> bool:
    """Whatever a sweep would find now, also what a later release adds."""
    values = {name: getattr(found, name) for name in found.__struct_fields__}
    is_due = any(value == 0.0 for name, value in values.items() if name.endswith("_seconds"))
    return is_due or any(
        value is True for name, value in values.items() if name not in _LEFT_TO_MAINTENANCE
    )


class LinkShard:
    """A shard. Its tenants exist before the first machine starts."""

    def __init__(self, name: str, links: Mapping[str, Link]) -> None:
        self.shown = name
        self._links = links
        self._stores = {
            tenant: AsyncStore(cast(Database, link).async_session())
            for tenant, link in links.items()
        }

    def open(self, tenant: str) -> Database:
        return cast(Database, self._links[tenant])

    def create(self, tenant: str) -> None:
        """Its store exists already."""

    def drop(self, tenant: str, *, only_if_empty: bool = False) -> bool:
        raise NotImplementedError("the simulation drops no tenant")

    async def tenants_with_work(self, tenants: Sequence[str]) -> list[TenantActivity]:
        return await asyncio.gather(*(self._activity(tenant) for tenant in tenants))

    async def _activity(self, tenant: str) -> TenantActivity:
        """A tenant with its store down is reported as broken. Any other error is raised, because
        real shards read the activity of all tenants in one statement."""
        store = self._stores[tenant]
        try:
            sweep_check = await store.sweep_check(())
            counts = await store.counts()
        except StoreError as error:
            if self._links[tenant].is_store_down:
                return TenantActivity(tenant, has_work=False, error=str(error))
            raise
        return TenantActivity(tenant, has_work=is_work(sweep_check) or counts.ready > 0)

    async def listen(
        self,
        _tenants: Callable[[], Sequence[str]],
        on_notification: Callable[[str, str | None], None],
    ) -> None:
        def forward(tenant: str) -> Callable[[str | None], None]:
            return lambda notification: on_notification(tenant, notification)

        async with asyncio.TaskGroup() as group:
            for tenant, link in self._links.items():
                group.create_task(link.listen(forward(tenant)))

    def share_connections(self) -> None:
        """The simulation has no connections to limit."""

    def close(self) -> None:
        """The world closes its stores."""

    async def aclose(self) -> None:
        """The world closes its stores."""
