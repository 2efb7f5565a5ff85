"""Renews all leases of a worker together, and stops the handlers of lost ones.

The renewer has its own thread, event loop and connection, so that a handler which blocks the
worker's loop delays jobs but loses no lease. It also marks long-running jobs as running, reads
requests to stop them, and sends the worker's heartbeat.

Each round: lose leases that may have expired, renew, mark running, read requests, heartbeat.
A lease is renewed after a third of its time, and counts as lost shortly before its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Sequence
from typing import Protocol

from freehold.errors import StoreError
from freehold.model.job import StopRequest
from freehold.model.worker_info import Heartbeat
from freehold.store.types import LeaseKey, Renewed
from freehold.telemetry import Telemetry, fields, log
from freehold.worker.config import WorkerSettings
from freehold.worker.heartbeat import (
    BUSY_HEARTBEAT_SECONDS,
    HEARTBEAT_EXPIRY_SECONDS,
    HeartbeatSchedule,
)
from freehold.worker.held_leases import OPEN, STARTED, HeldLease, HeldLeases, Phase, StopReason

#: A job that has run this long is marked as running; most have ended by then.
MARK_RUNNING_SECONDS = 0.25
#: The share of its time by which a lease counts as lost before it can have expired.
MARGIN_SHARE = 0.05
#: From this long past its timeout on, a lease is no longer renewed: a hung handler must lose its
#: job.
PAST_TIMEOUT_SECONDS = 10.0
_RETRY_SECONDS = 0.5
#: A failed renewal is tried again within this share of the time that is left.
_RETRY_SHARE = 0.25
_TAKEN = "the job is no longer leased to this worker"


class RenewStore(Protocol):
    async def renew(
        self,
        owner: str,
        leases: Sequence[LeaseKey],
        lease_seconds: float,
        heartbeat: Heartbeat | None,
        heartbeat_seconds: float,
    ) -> Renewed: ...

    async def heartbeat(self, heartbeat: Heartbeat, heartbeat_seconds: float) -> None: ...

    async def mark_running(
        self, owner: str, leases: Sequence[LeaseKey], ran_seconds: Sequence[float]
    ) -> tuple[int, ...]: ...

    async def stop_requests(self, owner: str) -> dict[LeaseKey, StopRequest]: ...


class LeaseRenewer:
    """One per worker."""

    def __init__(
        self,
        store: RenewStore,
        owner: str,
        leases: HeldLeases,
        schedule: HeartbeatSchedule,
        telemetry: Telemetry,
        settings: WorkerSettings,
    ) -> None:
        self._store = store
        self._owner = owner
        self._leases = leases
        self._schedule = schedule
        self._telemetry = telemetry
        self._store_part = telemetry.store_health.part("lease renewer")
        self._lease_seconds = settings.lease_timeout_seconds
        #: A lease counts as lost this long before its end.
        self._margin = self._lease_seconds * MARGIN_SHARE
        #: A lease is renewed this long before its end.
        self._renew_before = self._lease_seconds * 2 / 3
        self._request_poll_seconds = settings.request_poll_seconds
        self._wakeup = asyncio.Event()
        self._has_requests = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._renew_at = self._read_requests_at = 0.0
        #: After an error nothing but renewals is sent before this time.
        self._rest_until = 0.0
        #: When it wakes by itself. 0: it is awake, and checks all leases before it sleeps again.
        self._wakes_at = 0.0
        self._is_failing = False

    async def run(self) -> None:
        """A renewal can hang; expired leases are lost in time by a task of their own."""
        expiry = asyncio.create_task(self._watch_expiry())
        try:
            await self._run_rounds()
        finally:
            expiry.cancel()
            self._store_part.leave()

    async def _watch_expiry(self) -> None:
        while True:
            now = asyncio.get_running_loop().time()
            self.lose_expired(self._leases.all(), now)
            ends = [lease.valid_until for lease in self._leases.all() if lease.phase in OPEN]
            wait = min(ends, default=now + self._lease_seconds) - self._margin - now
            await asyncio.sleep(min(max(wait, 0.02), self._lease_seconds / 4))

    async def _run_rounds(self) -> None:
        self._loop = asyncio.get_running_loop()
        while True:
            await self._wait()
            self._wakes_at = 0.0
            await self.run_once()

    def on_claimed(self, now: float, valid_until: float) -> None:
        """Leases were added. Wakes the renewer only if it would sleep past their first deadline:
        claims arrive hundreds of times a second."""
        if self._wakes_at > min(now + MARK_RUNNING_SECONDS, valid_until - self._renew_before):
            self.wake()

    def wake(self, *, has_requests: bool = False) -> None:
        """The worker's state changed, or a stop was requested. Callable from any thread."""
        if has_requests:
            self._has_requests = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the renewer crashed, and its loop is closed
                self._loop.call_soon_threadsafe(self._wakeup.set)

    async def run_once(self) -> None:
        now = asyncio.get_running_loop().time()
        if leases := self._leases.all():
            self.lose_expired(leases, now)
        # First: nothing else may cost a lease.
        if leases and now >= self._renew_at and len(self._leases):
            await self._renew(now)
        if leases and now >= self._rest_until:
            await self._mark_running(now)
        has_requests = self._has_requests or now >= self._read_requests_at
        if len(self._leases) and has_requests and now >= self._rest_until:
            await self._read_requests(now)
        if now >= max(self._schedule.due_at(), self._rest_until):
            await self._send_heartbeat(now)

    async def _wait(self) -> None:
        """Until the next step is due; without leases, until a claim or the next heartbeat."""
        self._wakeup.clear()
        self._wakes_at = math.inf  # set before the leases are read: a later claim wakes it
        leases = self._leases.all()
        now = asyncio.get_running_loop().time()
        if self._has_requests and leases and now >= self._rest_until:
            return
        if not leases:
            await self._wait_until(max(self._schedule.due_at(), self._rest_until))
            now = asyncio.get_running_loop().time()
            self._renew_at = now + self._lease_seconds / 3
            self._read_requests_at = now + self._request_poll_seconds
            self._advance_renewal(now)
            return
        self._advance_renewal(now)
        due = min(self._read_requests_at, self._schedule.due_at())
        starts = [started_at for _, started_at in _unmarked(leases)]
        if starts:
            due = min(due, min(starts) + MARK_RUNNING_SECONDS)
        ends = [lease.valid_until for lease in leases if lease.phase in OPEN]
        expires = min(ends, default=math.inf) - self._margin
        await self._wait_until(min(self._renew_at, max(due, self._rest_until), expires))

    def _advance_renewal(self, now: float) -> None:
        """A lease counts from when its claim was sent: after a slow claim it is renewed sooner."""
        ends = [
            lease.valid_until
            for lease in self._leases.all()
            if lease.phase in OPEN and not self._is_past_timeout(lease, now)
        ]
        if ends and not self._is_failing:
            self._renew_at = min(self._renew_at, min(ends) - self._renew_before)

    async def _wait_until(self, due: float) -> None:
        self._wakes_at = due
        now = asyncio.get_running_loop().time()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.005, due - now)):
                await self._wakeup.wait()

    def lose_expired(self, leases: Sequence[HeldLease], now: float) -> None:
        """Without a renewal another worker may get the lease: stop the handler before that, or do
        not start it."""
        for lease in leases:
            if now >= lease.valid_until - self._margin:
                self._lose(lease, "it could not be renewed in time")

    def _lose(self, lease: HeldLease, why: str) -> None:
        if self._leases.get(lease.key) is not lease or not lease.move_to(Phase.LOST):
            return  # its end is being written, and is refused if the lease is gone
        self._leases.remove(lease)
        if lease.stop(StopReason.LEASE_LOST):
            self._telemetry.count("lost_leases")
            attempt = lease.attempt
            log.warning(
                "job %d: its lease was lost: %s",
                attempt.job_id,
                why,
                extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
            )

    async def _mark_running(self, now: float) -> None:
        due = [
            (lease, now - started_at)
            for lease, started_at in _unmarked(self._leases.all())
            if now >= started_at + MARK_RUNNING_SECONDS
        ]
        if not due:
            return
        for lease, _ in due:
            lease.marked_running = True
        try:
            keys, ran_seconds = [lease.key for lease, _ in due], [ran for _, ran in due]
            lost = await self._store.mark_running(self._owner, keys, ran_seconds)
        except StoreError as error:
            for lease, _ in due:  # marked in a later round; nothing depends on it
                lease.marked_running = False
            self._rest(error)
            return
        for lease, _ in due:
            if lease.attempt.job_id in lost:
                self._lose(lease, _TAKEN)

    async def _read_requests(self, now: float) -> None:
        self._has_requests = False
        self._read_requests_at = now + self._request_poll_seconds
        try:
            requests = await self._store.stop_requests(self._owner)
        except StoreError as error:
            self._rest(error)
            return
        for key, request in requests.items():
            lease = self._leases.get(key)
            if lease is not None:
                _stop_as_requested(lease, request)

    async def _renew(self, now: float) -> None:
        leases = [lease for lease in self._leases.all() if not self._is_past_timeout(lease, now)]
        heartbeat = self._heartbeat_due_soon(now) if leases else None
        try:
            renewed = await self._store.renew(
                self._owner,
                [lease.key for lease in leases],
                self._lease_seconds,
                heartbeat,
                HEARTBEAT_EXPIRY_SECONDS,
            )
        except StoreError as error:
            self._renew_again(leases, self._rest(error))
            return
        self._store_part.works()
        self._renew_at = now + self._lease_seconds / 3
        self._is_failing, self._rest_until = False, 0.0
        if heartbeat is not None:
            self._schedule.sent(heartbeat, now)
        for lease in leases:
            job_id = lease.attempt.job_id
            if job_id in renewed.held:
                lease.valid_until = now + self._lease_seconds
                if (request := renewed.held[job_id]) is not None:
                    _stop_as_requested(lease, request)
            else:
                self._lose(lease, _TAKEN)

    def _rest(self, error: StoreError, first_seconds: float = _RETRY_SECONDS) -> float:
        """Returns the wait after an error."""
        self._telemetry.count("store_errors", label="renewer")
        wait = self._store_part.failed(error, first_seconds)
        self._rest_until = asyncio.get_running_loop().time() + wait
        self._store_part.call_when_back(self._end_rest)
        return wait

    def _end_rest(self) -> None:
        self._rest_until = 0.0
        self._wakeup.set()

    def _renew_again(self, leases: Sequence[HeldLease], wait: float) -> None:
        """Sooner than the wait where a lease would not last: it is tried until its end."""
        now = asyncio.get_running_loop().time()
        ends = [lease.valid_until for lease in leases if lease.phase in OPEN]
        left = min(ends, default=math.inf) - self._margin - now
        self._renew_at = now + min(wait, max(_RETRY_SECONDS, left * _RETRY_SHARE))
        self._is_failing = True

    def _heartbeat_due_soon(self, now: float) -> Heartbeat | None:
        """A renewal carries a heartbeat that would be due soon: one round trip for both."""
        soon = self._schedule.due_at() - BUSY_HEARTBEAT_SECONDS / 2
        return self._schedule.current() if now >= soon else None

    async def _send_heartbeat(self, now: float) -> None:
        heartbeat = self._schedule.current()
        try:
            await self._store.heartbeat(heartbeat, HEARTBEAT_EXPIRY_SECONDS)
        except StoreError as error:
            # There is no hurry: the last heartbeat still counts.
            self._rest(error, BUSY_HEARTBEAT_SECONDS)
            return
        self._store_part.works()
        self._schedule.sent(heartbeat, now)

    def _is_past_timeout(self, lease: HeldLease, now: float) -> bool:
        return lease.deadline is not None and now > lease.deadline + PAST_TIMEOUT_SECONDS


def _unmarked(leases: Sequence[HeldLease]) -> list[tuple[HeldLease, float]]:
    """Those that the store does not show as running yet, and when they were started."""
    return [
        (lease, lease.started_at)
        for lease in leases
        if lease.started_at is not None and not lease.marked_running and lease.phase in STARTED
    ]


def _stop_as_requested(lease: HeldLease, request: StopRequest) -> None:
    lease.request = request
    lease.stop(StopReason.CANCELED if request is StopRequest.CANCEL else StopReason.PAUSED)
