"""One thread and one event loop for the keepers of all tenants, and for who listens for them.

What `keeping.KeeperThread` is to one worker. Here a worker's hints come from its place's one
listener. A keeper that crashes ends its own worker only.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from freehold.store.database import Database
from freehold.store.shard import Shard
from freehold.worker.lease_renewer import LeaseRenewer
from freehold.worker.loop_watchdog import LoopWatchdog
from freehold.worker.renewal_thread import OnHint, RenewalHost, StartRenewal

#: Tenant ("": all of the place) and hint, told on the worker's loop.
OnTenantNotification: TypeAlias = Callable[[str, str | None], None]


class SharedRenewalThread:
    """Started before the first worker, and stopped after the last. Told things in its thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._main, name="freehold-keepers", daemon=True)
        self._ready = threading.Event()
        self._error: BaseException | None = None
        #: Who hears for which tenant, by place.
        self._hearing: dict[str, dict[str, OnHint]] = {}
        self._listening: set[str] = set()

    # -- its thread --------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error

    def _main(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:  # it has no loop: no more files can be opened
            self._error = error
        finally:
            self._ready.set()

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        self._ready.set()
        await self._end.wait()

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """In the thread. Cancelling cancels it there, and waits until it has ended there."""
        assert self._loop is not None
        there, home = self._loop, asyncio.get_running_loop()
        ended: asyncio.Future[None] = home.create_future()
        tasks: list[asyncio.Task[None]] = []

        def begin() -> None:
            tasks.append(there.create_task(work()))
            tasks[0].add_done_callback(
                lambda task: home.call_soon_threadsafe(_pass_on, task, ended)
            )

        there.call_soon_threadsafe(begin)
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            there.call_soon_threadsafe(lambda: tasks[0].cancel())
            await asyncio.wait({ended})
            raise

    async def stop(self) -> None:
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
            await asyncio.to_thread(self._thread.join)

    # -- hints -------------------------------------------------------------------------------

    async def listen(
        self, name: str, place: Shard, tenants: Callable[[], list[str]], told: OnTenantNotification
    ) -> None:
        """Pass on what is heard of a place: to the tenant's worker here, and to the host."""
        home = asyncio.get_running_loop()

        def heard(tenant: str, hint: str | None) -> None:
            self._hear(name, tenant, hint)
            if not home.is_closed():
                home.call_soon_threadsafe(told, tenant, hint)

        await self.run(lambda: place.listen(tenants, heard))

    def _hear(self, place: str, tenant: str, hint: str | None) -> None:
        if hint is None:
            self._listening.discard(place)
        else:
            self._listening.add(place)
        hearing = self._hearing.setdefault(place, {})
        concerned = [hearing.get(tenant)] if tenant else list(hearing.values())
        for heard in concerned:
            if heard is not None:
                heard(hint)

    def is_listening(self, place: str) -> bool:
        return place in self._listening

    # -- keepers -----------------------------------------------------------------------------

    def keep(self, place: str, tenant: str) -> StartRenewal:
        """For this tenant's worker."""

        def keep(
            keeper: LeaseRenewer, _database: Database, _watch: LoopWatchdog, heard: OnHint
        ) -> RenewalHost:
            return _HostedRenewer(self, keeper, place, tenant, heard)

        return keep

    def attach(self, place: str, tenant: str, heard: OnHint) -> None:
        self._hearing.setdefault(place, {})[tenant] = heard
        if self.is_listening(place):
            heard("")  # whatever was missed until now

    def detach(self, place: str, tenant: str, heard: OnHint) -> None:
        hearing = self._hearing.get(place, {})
        if hearing.get(tenant) == heard:
            del hearing[tenant]


class _HostedRenewer:
    """One tenant's keeper among the others."""

    def __init__(
        self,
        keepers: SharedRenewalThread,
        keeper: LeaseRenewer,
        place: str,
        tenant: str,
        heard: OnHint,
    ) -> None:
        self._keepers = keepers
        self._keeper = keeper
        self._place = place
        self._tenant = tenant
        self._heard = heard
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._running = asyncio.create_task(self._keepers.run(self._run))

    async def _run(self) -> None:
        """In the thread."""
        self._keepers.attach(self._place, self._tenant, self._heard)
        try:
            await self._keeper.run()
        finally:
            self._keepers.detach(self._place, self._tenant, self._heard)

    async def crashed(self) -> None:
        assert self._running is not None
        await asyncio.shield(self._running)

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)


def _pass_on(task: asyncio.Task[None], ended: asyncio.Future[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        ended.set_exception(error)
    else:
        ended.set_result(None)
