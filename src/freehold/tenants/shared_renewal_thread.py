"""One thread and one event loop for the lease renewers and the listeners of all tenants.

It is to a host what `worker/renewal_thread.py` is to one worker. The notifications of a worker come
from the one listener of its shard. A lease renewer that crashes ends its own worker only.
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
from freehold.worker.parts import Part
from freehold.worker.renewal_thread import OnWorkerNotification, StartRenewal

#: Called on the host's loop with a tenant ("": all of the shard) and a topic.
OnTenantNotification: TypeAlias = Callable[[str, str | None], None]


class SharedRenewalThread:
    """Starts before the first worker and stops after the last."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._main, name="freehold-renewal", daemon=True)
        self._ready = threading.Event()
        self._error: BaseException | None = None
        #: Callbacks of the workers, by shard and tenant. Used in the thread only.
        self._subscribers: dict[str, dict[str, OnWorkerNotification]] = {}
        self._listening: set[str] = set()

    # -- the thread --------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error

    def _main(self) -> None:
        try:
            asyncio.run(self._run_loop())
        except BaseException as error:  # no event loop: the process cannot open more files
            self._error = error
        finally:
            self._ready.set()

    async def _run_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        self._ready.set()
        await self._end.wait()

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run it in the thread. Canceling this cancels it there and waits until it has ended."""
        assert self._loop is not None
        there, here = self._loop, asyncio.get_running_loop()
        ended: asyncio.Future[None] = here.create_future()
        tasks: list[asyncio.Task[None]] = []

        def begin() -> None:
            tasks.append(there.create_task(work()))
            tasks[0].add_done_callback(
                lambda task: here.call_soon_threadsafe(_copy_result, task, ended)
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

    # -- notifications -----------------------------------------------------------------------

    async def listen(
        self,
        name: str,
        shard: Shard,
        tenants: Callable[[], list[str]],
        on_notification: OnTenantNotification,
    ) -> None:
        """Pass the notifications of a shard on to the tenants' workers and to the host."""
        here = asyncio.get_running_loop()

        def forward(tenant: str, topic: str | None) -> None:
            self._notify_workers(name, tenant, topic)
            if not here.is_closed():
                here.call_soon_threadsafe(on_notification, tenant, topic)

        await self.run(lambda: shard.listen(tenants, forward))

    def _notify_workers(self, shard: str, tenant: str, topic: str | None) -> None:
        if topic is None:
            self._listening.discard(shard)
        else:
            self._listening.add(shard)
        subscribers = self._subscribers.setdefault(shard, {})
        for notify in [subscribers.get(tenant)] if tenant else list(subscribers.values()):
            if notify is not None:
                notify(topic)

    def is_listening(self, shard: str) -> bool:
        return shard in self._listening

    # -- renewers ----------------------------------------------------------------------------

    def start_renewal(self, shard: str, tenant: str) -> StartRenewal:
        """For the worker of this tenant."""

        def start_renewal(
            renewer: LeaseRenewer,
            _database: Database,
            _watchdog: LoopWatchdog,
            on_notification: OnWorkerNotification,
        ) -> Part:
            return _HostedRenewer(self, renewer, shard, tenant, on_notification)

        return start_renewal

    def subscribe(self, shard: str, tenant: str, notify: OnWorkerNotification) -> None:
        self._subscribers.setdefault(shard, {})[tenant] = notify
        if self.is_listening(shard):
            notify("")  # for notifications that came before

    def unsubscribe(self, shard: str, tenant: str, notify: OnWorkerNotification) -> None:
        subscribers = self._subscribers.get(shard, {})
        if subscribers.get(tenant) == notify:
            del subscribers[tenant]


class _HostedRenewer:
    """The lease renewer of one tenant's worker."""

    def __init__(
        self,
        renewal_thread: SharedRenewalThread,
        renewer: LeaseRenewer,
        shard: str,
        tenant: str,
        on_notification: OnWorkerNotification,
    ) -> None:
        self._renewal_thread = renewal_thread
        self._renewer = renewer
        self._shard = shard
        self._tenant = tenant
        self._on_notification = on_notification
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._running = asyncio.create_task(self._renewal_thread.run(self._run))

    async def _run(self) -> None:
        """Runs in the thread."""
        self._renewal_thread.subscribe(self._shard, self._tenant, self._on_notification)
        try:
            await self._renewer.run()
        finally:
            self._renewal_thread.unsubscribe(self._shard, self._tenant, self._on_notification)

    async def crashed(self) -> None:
        assert self._running is not None
        await asyncio.shield(self._running)

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)


def _copy_result(task: asyncio.Task[None], ended: asyncio.Future[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        ended.set_exception(error)
    else:
        ended.set_result(None)
