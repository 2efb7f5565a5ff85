"""4. Keeps every lease in hand alive, in one batch; stops handlers that lost theirs.

It runs on an event loop of its own, in a thread of its own, with a connection of its own, so
that a handler which blocks the worker's loop loses nothing but its own latency. It also
shows long-running jobs as running, reads what was asked of them, and says that the worker lives.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Sequence
from typing import Protocol

from freehold.errors import StoreError
from freehold.model.job import Request
from freehold.model.worker_info import Heartbeat
from freehold.store.types import LeaseKey, Renewed
from freehold.telemetry import Telemetry, fields, log
from freehold.worker.heartbeat import (
    BUSY_HEARTBEAT_SECONDS,
    HEARTBEAT_EXPIRY_SECONDS,
    HeartbeatSchedule,
)
from freehold.worker.held_leases import HeldLease, HeldLeases, StopReason

#: A job that has run this long is shown as running; most have ended by then (P3).
SHOW_SECONDS = 0.25
#: A lease is given up this long before it can have expired.
MARGIN_SHARE = 0.05
#: A hung handler is ended by its timeout, not kept alive by heartbeats.
OVERDUE_SECONDS = 10.0
_RETRY_SECONDS = 0.5


class RenewStore(Protocol):
    async def renew(
        self,
        owner: str,
        leases: Sequence[LeaseKey],
        lease_seconds: float,
        beat: Heartbeat | None,
        beat_seconds: float,
    ) -> Renewed: ...

    async def beat(self, beat: Heartbeat, beat_seconds: float) -> None: ...

    async def start(
        self, owner: str, leases: Sequence[LeaseKey], ran_seconds: Sequence[float]
    ) -> tuple[int, ...]: ...

    async def requests(self, owner: str) -> dict[LeaseKey, Request]: ...


class LeaseRenewer:
    """One per worker."""

    def __init__(
        self,
        store: RenewStore,
        owner: str,
        hand: HeldLeases,
        heart: HeartbeatSchedule,
        telemetry: Telemetry,
        *,
        lease_seconds: float,
        request_poll_seconds: float,
    ) -> None:
        self._store = store
        self._owner = owner
        self._hand = hand
        self._heart = heart
        self._telemetry = telemetry
        self._lease_seconds = lease_seconds
        self._request_poll_seconds = request_poll_seconds
        self._poke = asyncio.Event()
        self._asked = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._renew_at = self._look_at = 0.0
        #: When it wakes by itself; 0: it is awake, and looks at all of it before it sleeps again.
        self._wakes_at = 0.0
        self._is_failing = False

    async def run(self) -> None:
        """Renewing can hang; giving up in time must not wait for it."""
        guard = asyncio.create_task(self._guard())
        try:
            await self._keep()
        finally:
            guard.cancel()

    async def _guard(self) -> None:
        while True:
            now = asyncio.get_running_loop().time()
            self._give_up_expired(now)
            ends = [held.valid_until for held in self._hand.all() if not held.ended]
            wait = min(ends, default=now + self._lease_seconds) - self._margin - now
            await asyncio.sleep(min(max(wait, 0.02), self._lease_seconds / 4))

    async def _keep(self) -> None:
        self._loop = asyncio.get_running_loop()
        while True:
            await self._wait()
            self._wakes_at = 0.0
            await self.run_once()

    def took(self, now: float, valid_until: float) -> None:
        """Something was taken in hand. Who claims hundreds of times a second wakes nobody who will
        look in time."""
        if self._wakes_at > min(now + SHOW_SECONDS, self._renewal_of(valid_until)):
            self.poke()

    def poke(self, *, asked: bool = False) -> None:
        """Something changed, or was asked of what is in hand. From any thread."""
        if asked:
            self._asked = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has crashed, and its loop is closed
                self._loop.call_soon_threadsafe(self._poke.set)

    async def run_once(self) -> None:
        now = asyncio.get_running_loop().time()
        self._give_up_expired(now)
        if len(self._hand) and now >= self._renew_at:  # first: nothing else may cost a lease
            await self._renew(now)
        await self._show_running(now)
        if len(self._hand) and (self._asked or now >= self._look_at):
            await self._look_for_requests(now)
        if now >= self._heart.due_at():
            await self._beat(now)

    async def _wait(self) -> None:
        """Until the next thing is due; with empty hands, until something is taken, or a beat."""
        self._poke.clear()
        self._wakes_at = math.inf  # before it looks: what is taken after that pokes
        held = self._hand.all()
        if self._asked and held:
            return
        if not held:
            await self._wait_until(self._heart.due_at())
            now = asyncio.get_running_loop().time()
            self._renew_at = now + self._lease_seconds / 3
            self._look_at = now + self._request_poll_seconds
            self._hurry(now)
            return
        self._hurry(asyncio.get_running_loop().time())
        due = min(self._renew_at, self._look_at, self._heart.due_at())
        for each in held:
            if not each.ended:
                due = min(due, each.valid_until - self._margin)
            if each.started is not None and not (each.shown or each.ended):
                due = min(due, each.started + SHOW_SECONDS)
        await self._wait_until(due)

    def _hurry(self, now: float) -> None:
        """A lease counts from when its claim was sent: one that was slow is renewed the sooner."""
        ends = [
            held.valid_until
            for held in self._hand.all()
            if not (held.ended or self._is_overdue(held, now))
        ]
        if ends and not self._is_failing:
            self._renew_at = min(self._renew_at, self._renewal_of(min(ends)))

    def _renewal_of(self, valid_until: float) -> float:
        return valid_until - self._lease_seconds * 2 / 3

    async def _wait_until(self, due: float) -> None:
        self._wakes_at = due
        now = asyncio.get_running_loop().time()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.005, due - now)):
                await self._poke.wait()

    @property
    def _margin(self) -> float:
        return self._lease_seconds * MARGIN_SHARE

    def _give_up_expired(self, now: float) -> None:
        """Without a renewal in time the lease may be somebody else's: stop before that."""
        for held in self._hand.all():
            if now >= held.valid_until - self._margin:
                self._lose(held, "it could not be renewed in time")

    def _lose(self, held: HeldLease, why: str) -> None:
        if held.ended or self._hand.get(held.key) is not held:
            return  # its end is being written, and will be refused if need be
        self._hand.let_go(held)
        if held.stop(StopReason.LEASE_LOST):
            self._telemetry.count("lost_leases")
            attempt = held.attempt
            log.warning(
                "job %d: its lease was lost: %s",
                attempt.job_id,
                why,
                extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
            )

    async def _show_running(self, now: float) -> None:
        late = [
            (held, now - held.started)
            for held in self._hand.all()
            if not (held.shown or held.ended)
            and held.started is not None
            and now >= held.started + SHOW_SECONDS
        ]
        if not late:
            return
        for held, _ in late:
            held.shown = True
        try:
            keys, ran_seconds = [held.key for held, _ in late], [ran for _, ran in late]
            lost = await self._store.start(self._owner, keys, ran_seconds)
        except StoreError:
            for held, _ in late:  # shown with the next round; nothing depends on it
                held.shown = False
            await asyncio.sleep(_RETRY_SECONDS)
            return
        for held, _ in late:
            if held.attempt.job_id in lost:
                self._lose(held, "somebody else owns the job")

    async def _look_for_requests(self, now: float) -> None:
        self._asked = False
        self._look_at = now + self._request_poll_seconds
        try:
            asked = await self._store.requests(self._owner)
        except StoreError:
            self._telemetry.count("store_errors", label="keeper")
            return
        for key, request in asked.items():
            held = self._hand.get(key)
            if held is not None:
                _obey(held, request)

    async def _renew(self, now: float) -> None:
        held = [each for each in self._hand.all() if not self._is_overdue(each, now)]
        beat = self._beat_by_the_way(now) if held else None
        try:
            answer = await self._store.renew(
                self._owner,
                [each.key for each in held],
                self._lease_seconds,
                beat,
                HEARTBEAT_EXPIRY_SECONDS,
            )
        except StoreError as error:
            self._telemetry.count("store_errors", label="keeper")
            log.warning("renewing %d leases failed, trying again: %s", len(held), error)
            self._renew_at = now + _RETRY_SECONDS
            self._is_failing = True
            return
        self._renew_at = now + self._lease_seconds / 3
        self._is_failing = False
        if beat is not None:
            self._heart.said(beat, now)
        for each in held:
            job_id = each.attempt.job_id
            if job_id in answer.held:
                each.valid_until = now + self._lease_seconds
                if (request := answer.held[job_id]) is not None:
                    _obey(each, request)
            else:
                self._lose(each, "somebody else owns the job")

    def _beat_by_the_way(self, now: float) -> Heartbeat | None:
        """A renewal takes along a beat that would be due soon: one round trip for both."""
        soon = self._heart.due_at() - BUSY_HEARTBEAT_SECONDS / 2
        return self._heart.word() if now >= soon else None

    async def _beat(self, now: float) -> None:
        beat = self._heart.word()
        try:
            await self._store.beat(beat, HEARTBEAT_EXPIRY_SECONDS)
        except StoreError:
            self._telemetry.count("store_errors", label="keeper")
            self._heart.failed(now)
            return
        self._heart.said(beat, now)

    def _is_overdue(self, held: HeldLease, now: float) -> bool:
        return held.deadline is not None and now > held.deadline + OVERDUE_SECONDS


def _obey(held: HeldLease, request: Request) -> None:
    held.request = request
    held.stop(StopReason.CANCELED if request is Request.CANCEL else StopReason.PAUSED)
