"""Keeps the right number of workers alive: up at once, down slowly, dead ones replaced.

    look at the store --Look--> rescale (model/scaling) --how many--> fleet: start, let go

It counts by seats (see `seats`), so that there are never too many, and reads in the registry
who is idle. It interrupts no job: whoever is let go decides by itself whether it has something
to do. If the manager is killed, its workers go on; the next manager of the same folder takes
them over, and where none comes within seconds, they drain.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Sequence
from pathlib import Path

from freehold.errors import Refused, StoreError
from freehold.exit_codes import EXIT_DONE, EXIT_KILLED
from freehold.manager import process_slots
from freehold.manager.fleet import Fleet
from freehold.manager.spawn import Kill, Start, kill
from freehold.manager.store_snapshot import SnapshotStore, StoreSnapshot, take_snapshot
from freehold.manager.worker_process import WorkerProcess
from freehold.model.scaling import Scale, ScaleRule, rescale
from freehold.telemetry import log

#: How often it looks whether all its workers live.
TICK_SECONDS = 0.25
#: Workers that look who sits on the chair are in the way for a moment.
_LOCK_SECONDS = 2.0
_LOCK_CHECK_SECONDS = 0.05
#: A store may hang; the workers are looked after all the same.
_LOOK_SECONDS = 5.0
#: Those who are in a hurry, and have not ended after this long, are ended.
_HURRY_SECONDS = 30.0


def new_manager() -> str:
    return f"m{os.getpid():x}-{secrets.token_hex(4)}"


class Manager:
    """One for a folder."""

    def __init__(
        self,
        store: SnapshotStore,
        rule: ScaleRule,
        start: Start,
        folder: Path,
        *,
        queues: Sequence[str],
        scale_seconds: float,
        grace_seconds: float,
        name: str = "",
        kill: Kill = kill,
    ) -> None:
        self.name = name or new_manager()
        self._store = store
        self._rule = rule
        self._folder = folder
        self._queues = queues
        self._scale_seconds = scale_seconds
        self._fleet = Fleet(folder, rule.max_count, start, grace_seconds, kill)
        self._scale = Scale(wanted=rule.default_count)
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self._is_deaf = False

    async def run(self) -> int:
        """Until told to stop, and all workers have ended. Answers the exit code."""
        with contextlib.ExitStack() as stack:
            await self._take_the_chair(stack)
            loop = asyncio.get_running_loop()
            log.info(
                "manager %s starts: %d to %d workers",
                self.name,
                self._rule.default_count,
                self._rule.max_count,
            )
            self._fleet.adopt(loop.time())
            await self._manage(loop)
            await self._end(loop)
        log.info("manager %s has ended", self.name)
        return EXIT_KILLED if self._fleet.killed else EXIT_DONE

    def stop(self) -> None:
        """All workers drain, and then the manager ends. A second call hurries them."""
        if self._stopping.is_set():
            self._hurry.set()
        self._stopping.set()

    def renew(self) -> None:
        """Replace all workers, by drain."""
        if not self._stopping.is_set():
            self._fleet.renew(asyncio.get_running_loop().time())

    async def _take_the_chair(self, stack: contextlib.ExitStack) -> None:
        tries = round(_LOCK_SECONDS / _LOCK_CHECK_SECONDS)
        for _ in range(tries):
            if stack.enter_context(process_slots.manager_lock(self._folder, self.name)):
                return
            stack.close()
            await asyncio.sleep(_LOCK_CHECK_SECONDS)
        raise Refused(
            f"another manager ({process_slots.manager_in(self._folder)}) runs here for this store: "
            "stop it, or give this one another --name"
        )

    async def _manage(self, loop: asyncio.AbstractEventLoop) -> None:
        look_at = loop.time()
        while not self._stopping.is_set():
            self._fleet.reap(loop.time())
            if loop.time() >= look_at:
                look_at = loop.time() + self._scale_seconds
                await self._look(loop)
            now = loop.time()
            self._fleet.start(self._scale.wanted - len(self._fleet.working(now)), now)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(TICK_SECONDS, self._scale_seconds)):
                    await self._stopping.wait()

    async def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        if not process_slots.touch(self._folder):
            raise Refused(f"{self._folder} was removed while the manager ran: start it again")
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                found = await take_snapshot(self._store)
        except (StoreError, TimeoutError) as error:
            if not self._is_deaf:
                log.warning("the store does not answer, the number of workers stays: %s", error)
            self._is_deaf = True
            self._fleet.heard_nothing()
            return
        self._is_deaf = False
        self._fleet.heard(found.workers, loop.time())
        self._rescale(found, loop.time())

    def _rescale(self, found: StoreSnapshot, now: float) -> None:
        working = self._fleet.working(now)
        # Those that were taken over, or did not want to go, count as wanted until they are not.
        before = Scale(
            wanted=max(self._scale.wanted, len(working)), quiet_since=self._scale.quiet_since
        )
        load = found.load(self._queues, self._fleet.owners)
        after = rescale(self._rule, before, load, now)
        if after.wanted > before.wanted:
            log.info(
                "%d jobs are ready, %d in hand: %d workers instead of %d",
                load.ready,
                load.leased,
                after.wanted,
                before.wanted,
            )
        self._scale = after
        if after.wanted < len(working):
            idle = [each for each in working if _is_idle(each, found)]
            # The newest first: the others know their way around.
            leaving = idle[after.wanted - len(working) :]
            # Where nobody is idle there is no change, and the next look tries again.
            self._scale = Scale(wanted=len(working) - len(leaving)) if leaving else before
            if leaving:
                log.info("%d workers are let go, %d stay", len(leaving), self._scale.wanted)
            self._fleet.rest(leaving, now)

    async def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        """Drain all of them; a second signal hurries them; what does not end then, is ended."""
        self._fleet.drain(loop.time())
        hurried_at: float | None = None
        while len(self._fleet):
            self._fleet.reap(loop.time())
            if self._hurry.is_set() and hurried_at is None:
                hurried_at = loop.time()
                self._fleet.signal(signal.SIGTERM)
            if hurried_at is not None and loop.time() - hurried_at >= _HURRY_SECONDS:
                hurried_at = loop.time()
                self._fleet.killed += len(self._fleet)
                self._fleet.signal(signal.SIGKILL)
            await asyncio.sleep(TICK_SECONDS / 5)


def _is_idle(each: WorkerProcess, found: StoreSnapshot) -> bool:
    worker = found.workers.get(each.owner or "")
    return worker is not None and worker.is_idle
