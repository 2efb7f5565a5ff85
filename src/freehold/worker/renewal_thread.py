"""The thread of the lease renewer: an event loop that no handler can block."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeAlias

from freehold.store.database import Database
from freehold.worker.lease_renewer import LeaseRenewer
from freehold.worker.loop_watchdog import LoopWatchdog
from freehold.worker.parts import Part

#: Receives a notification; None: notifications no longer arrive.
OnWorkerNotification: TypeAlias = Callable[[str | None], None]


#: Replaced on virtual time, where the renewer runs on the worker's own loop: `freehold.testing`.
StartRenewal: TypeAlias = Callable[
    [LeaseRenewer, Database, LoopWatchdog, OnWorkerNotification], Part
]


class RenewalThread:
    """Runs the lease renewer, the listener and the watchdog outside the worker's own loop."""

    def __init__(
        self,
        renewer: LeaseRenewer,
        database: Database,
        watchdog: LoopWatchdog,
        on_notification: OnWorkerNotification,
    ) -> None:
        self._renewer = renewer
        self._database = database
        self._watchdog = watchdog
        self._on_notification = on_notification
        self._thread = threading.Thread(target=self._main, name="freehold-renewal", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready = threading.Event()
        self._error: asyncio.Future[None] | None = None
        self._worker_loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._worker_loop = asyncio.get_running_loop()
        self._error = self._worker_loop.create_future()
        self._thread.start()
        self._ready.wait()

    async def crashed(self) -> None:
        assert self._error is not None
        await asyncio.shield(self._error)

    async def stop(self) -> None:
        if self._loop is not None and self._task is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._task.cancel)
        if self._thread.ident is not None:
            await asyncio.to_thread(self._thread.join)

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:  # no loop could be made: no more files can be opened
            self._report_crash(error)
        finally:
            self._ready.set()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._ready.set()
        others = [
            asyncio.create_task(self._database.listen(self._on_notification)),
            asyncio.create_task(self._watchdog.watch()),
        ]
        for task in others:
            task.add_done_callback(self._report_if_crashed)
        try:
            await self._renewer.run()
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self._report_crash(error)
        finally:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await self._database.aclose()

    def _report_if_crashed(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._report_crash(error)

    def _report_crash(self, error: BaseException) -> None:
        loop, future = self._worker_loop, self._error
        assert loop is not None
        assert future is not None
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(
                lambda: None if future.done() else future.set_exception(error)
            )
