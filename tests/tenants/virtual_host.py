"""A host on virtual time. Its tenants are in memory; statements are recorded and can be refused."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from freehold import Freehold
from freehold.client import Client
from freehold.model.tenant import Tenant, TenantState
from freehold.store.database import Database
from freehold.store.shard import TenantActivity
from freehold.store.store import Store
from freehold.store.types import ClaimRequest, QueueDemand
from freehold.tasks import Registry
from freehold.tenants.host import TenantHost
from freehold.testing import VirtualClock, VirtualLoop
from freehold.testing.host import InlineRenewalHost, InlineSharedThreads
from freehold.worker.config import WorkerSettings
from tests.testing.virtual_app import RecordingDatabase

T = TypeVar("T")
_HAS_WORK = """select exists (select 1 from job where stage in ('r', 'R')
    or (stage in ('w', 'b') and run_at <= clock())
    or (stage = 'h' and lease_expires_at <= clock()))"""


class MemoryShard:
    """Databases in memory, by name. Counts the checks."""

    shown = "memory"

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.databases: dict[str, Any] = {}
        self.broken: dict[str, str] = {}
        self.check_count = 0
        self.has_no_notifications = False

    def open(self, tenant: str) -> Database:
        database: Database = self.databases[tenant]
        return database

    def create(self, tenant: str) -> None:
        self.databases[tenant] = RecordingDatabase(self._clock)

    def drop(self, tenant: str, *, only_if_empty: bool = False) -> bool:
        del self.databases[tenant]
        return True

    async def tenants_with_work(self, tenants: Sequence[str]) -> list[TenantActivity]:
        self.check_count += 1
        return [self._check(name) for name in tenants]

    def _check(self, name: str) -> TenantActivity:
        if name in self.broken:
            return TenantActivity(name, has_work=False, error=self.broken[name])
        with self.databases[name]._engine.transaction() as connection:
            return TenantActivity(name, has_work=bool(connection.execute(_HAS_WORK).fetchone()[0]))

    async def listen(
        self,
        tenants: Callable[[], Sequence[str]],
        on_notification: Callable[[str, str | None], None],
    ) -> None:
        if self.has_no_notifications:
            await asyncio.Event().wait()

        def forward(tenant: str) -> Callable[[str | None], None]:
            return lambda topic: on_notification(tenant, topic)

        async with asyncio.TaskGroup() as group:
            for name in tenants():
                group.create_task(self.databases[name].listen(forward(name)))

    def share_connections(self) -> None:
        """There are no connections."""

    def close(self) -> None: ...

    async def aclose(self) -> None: ...


class VirtualTenants:
    """Tenants, their directory, and a host that serves them on virtual time."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.home = MemoryShard(self.clock)
        self.rows: dict[str, Tenant] = {}
        self.directory_writes: list[tuple[str, str]] = []
        self.app = Freehold("sqlite://:memory:")
        self._clients: dict[str, Client] = {}

    # -- the directory -----------------------------------------------------------------------

    async def tenants(self) -> Sequence[Tenant]:
        return list(self.rows.values())

    def shard(self, _name: str) -> MemoryShard:
        return self.home

    async def degrade(self, tenant: str, error: str) -> None:
        self.directory_writes.append((tenant, error))
        self.change(tenant, state=TenantState.DEGRADED, note=error)

    async def heal(self, tenant: str) -> None:
        self.directory_writes.append((tenant, "healed"))
        self.change(tenant, state=TenantState.ACTIVE, note=None)

    def change(self, tenant: str, **fields: Any) -> None:
        self.rows[tenant] = msgspec.structs.replace(self.rows[tenant], **fields)

    # -- producers ---------------------------------------------------------------------------

    def add(self, *names: str, **fields: Any) -> None:
        for name in names:
            self.home.create(name)
            self.rows[name] = Tenant(name=name, created_at=datetime.now(UTC), **fields)
            self._clients[name] = Client(self.home.open(name), lambda: self.clock.micros / 1e6)

    def enqueue(self, tenant: str, task: Any, *args: Any, count: int = 1, **options: Any) -> None:
        before = self.app._swap_client(self._clients[tenant])
        for _ in range(count):
            task.using(**options).enqueue(*args)
        self.app._swap_client(before)

    def park_ready_jobs(self, tenant: str) -> None:
        """Park the ready jobs, as a claimer does that knows no task."""
        demands = (QueueDemand("default", 10),)
        request = ClaimRequest(
            owner="older", lease_seconds=30.0, demands=demands, tasks=frozenset()
        )
        assert self._clients[tenant].store.claim(request) == []

    def stall_lane(self, tenant: str) -> None:
        """Delete the first job of a lane without promoting the next."""
        with self.home.databases[tenant]._engine.transaction() as connection:
            connection.execute("update job set stage = 'f' where target is not null")
            connection.execute(
                "delete from job where id = (select min(id) from job where target is not null)"
            )

    def state(self, tenant: str) -> TenantState:
        return self.rows[tenant].state

    def statements(self) -> int:
        return sum(len(database.seen) for database in self.home.databases.values())

    def succeeded(self, tenant: str) -> int:
        statement = "select count(*) from history where state = 'succeeded'"
        with self.home.databases[tenant]._engine.transaction() as connection:
            return int(connection.execute(statement).fetchone()[0])

    def store(self, tenant: str) -> Store:
        return self._clients[tenant].store

    def leased(self) -> int:
        return sum(client.store.counts().leased for client in self._clients.values())

    # -- the host ----------------------------------------------------------------------------

    def host(self, tasks: Registry | None = None, **settings: Any) -> TenantHost:
        return TenantHost(
            self,
            tasks or self.app.tasks,
            WorkerSettings(**settings),
            chance=random.Random(1).random,
            threads=InlineSharedThreads(),
            renewal_thread=InlineRenewalHost(),
        )

    @asynccontextmanager
    async def running_host(self, **settings: Any) -> AsyncIterator[TenantHost]:
        """A host that drains at the end."""
        host = self.host(**settings)
        running = asyncio.create_task(host.run())
        await asyncio.sleep(0.001)
        yield host
        host.drain()
        assert await running == 0

    def play(self, scenario: Coroutine[Any, Any, T]) -> T:
        with asyncio.Runner(loop_factory=lambda: VirtualLoop(self.clock)) as runner:
            return runner.run(scenario)

    async def until(self, condition: Callable[[], bool], within: float) -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not condition():
            assert loop.time() - began <= within, f"not within {within:g} s of virtual time"
            await asyncio.sleep(max(0.001, within / 1000))
        return loop.time() - began
