"""The keeper's thread: an event loop that no handler can block."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Protocol, TypeAlias

from freehold.store.database import Database
from freehold.worker.lease_renewer import LeaseRenewer
from freehold.worker.loop_watchdog import LoopWatchdog

OnHint: TypeAlias = Callable[[str | None], None]


class RenewalHost(Protocol):
    """Where a keeper lives."""

    def start(self) -> None: ...

    async def crashed(self) -> None:
        """Raises what ended the keeper, should anything do so."""

    async def stop(self) -> None: ...


#: On virtual time the keeper lives on the worker's own loop: see `freehold.testing`.
StartRenewal: TypeAlias = Callable[[LeaseRenewer, Database, LoopWatchdog, OnHint], RenewalHost]


class RenewalThread:
    """Runs a keeper and the listener beside the worker's own loop."""

    def __init__(
        self, keeper: LeaseRenewer, database: Database, watch: LoopWatchdog, heard: OnHint
    ) -> None:
        self._keeper = keeper
        self._database = database
        self._watch = watch
        self._heard = heard
        self._thread = threading.Thread(target=self._main, name="freehold-keeper", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready = threading.Event()
        self._error: asyncio.Future[None] | None = None
        self._home: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._home = asyncio.get_running_loop()
        self._error = self._home.create_future()
        self._thread.start()
        self._ready.wait()

    async def crashed(self) -> None:
        assert self._error is not None
        await asyncio.shield(self._error)

    async def stop(self) -> None:
        if self._loop is not None and self._task is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._task.cancel)
        await asyncio.to_thread(self._thread.join)

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:  # it has no loop: no more files can be opened
            self._tell(error)
        finally:
            self._ready.set()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._ready.set()
        beside = [
            asyncio.create_task(self._database.listen(self._heard)),
            asyncio.create_task(self._watch.look()),
        ]
        for task in beside:
            task.add_done_callback(self._tell_if_crashed)
        try:
            await self._keeper.run()
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self._tell(error)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            await self._database.aclose()

    def _tell_if_crashed(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._tell(error)

    def _tell(self, error: BaseException) -> None:
        home, future = self._home, self._error
        assert home is not None
        assert future is not None
        with contextlib.suppress(RuntimeError):
            home.call_soon_threadsafe(
                lambda: None if future.done() else future.set_exception(error)
            )
