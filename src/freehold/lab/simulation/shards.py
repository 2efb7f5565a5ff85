"""Where tenants live, as one machine reaches it: over a line to each tenant's store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from freehold.errors import StoreError
from freehold.lab.simulation.network import Link
from freehold.store.database import Database
from freehold.store.shard import TenantActivity
from freehold.store.store import AsyncStore


class LinkShard:
    """A place. Its tenants are there before the first machine is."""

    def __init__(self, name: str, lines: Mapping[str, Link]) -> None:
        self.shown = name
        self._lines = lines
        self._stores = {
            tenant: AsyncStore(cast(Database, line).async_session())
            for tenant, line in lines.items()
        }

    def open(self, tenant: str) -> Database:
        return cast(Database, self._lines[tenant])

    def create(self, tenant: str) -> None:
        """It is there."""

    def drop(self, tenant: str) -> None:
        raise NotImplementedError("no tenant goes")

    async def awake(self, tenants: Sequence[str]) -> list[TenantActivity]:
        return await asyncio.gather(*(self._look(tenant) for tenant in tenants))

    async def _look(self, tenant: str) -> TenantActivity:
        """One whose store is away is broken. Anything else is the way there, and so everybody's:
        real places answer for all in one statement, or not at all."""
        store = self._stores[tenant]
        try:
            chores = await store.chores(())
            counts = await store.counts()
        except StoreError as error:
            if self._lines[tenant].is_store_away:
                return TenantActivity(tenant, has_work=False, trouble=str(error))
            raise
        is_due = chores.due_seconds is not None and chores.due_seconds <= 0
        has_work = chores.expired or chores.limited or chores.stopped or is_due
        return TenantActivity(tenant, has_work=has_work or counts.ready > 0)

    async def listen(
        self, _tenants: Callable[[], Sequence[str]], heard: Callable[[str, str | None], None]
    ) -> None:
        def hears(tenant: str) -> Callable[[str | None], None]:
            return lambda hint: heard(tenant, hint)

        async with asyncio.TaskGroup() as group:
            for tenant, line in self._lines.items():
                group.create_task(line.listen(hears(tenant)))

    def use_few(self) -> None:
        """There are no connections."""

    def close(self) -> None:
        """Its stores are the world's."""

    async def aclose(self) -> None:
        """The same."""
