"""Held leases -> outcomes: each lease gets a slot, its attempt runs, its outcome is submitted.

    claimer --hold--> waiting --start_waiting--> running --> finisher
                         '--give back: no slot became free in a second, or the worker drains

The outcome of a lease that never started is submitted like any other.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Collection

from freehold.model.job import Attempt
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.retry import DEFAULT_RETRY
from freehold.telemetry import log
from freehold.worker.drain import STUCK_SECONDS, Drain
from freehold.worker.execution import outcomes
from freehold.worker.execution.runner import Runner
from freehold.worker.finisher import Finisher
from freehold.worker.held_leases import OPEN, HeldLease, HeldLeases, StopReason
from freehold.worker.job_log.writer import JobLogWriter
from freehold.worker.lease_renewer import LeaseRenewer
from freehold.worker.slots import LATE_SECONDS, Slots
from freehold.worker.wakeups import SWEEP_SECONDS, Wakeups


class Executor:
    """One per worker. Belongs to its event loop."""

    def __init__(
        self,
        leases: HeldLeases,
        slots: Slots,
        runner: Runner,
        log_writer: JobLogWriter,
        finisher: Finisher,
        renewer: LeaseRenewer,
        wakeups: Wakeups,
        drain: Drain,
    ) -> None:
        self.slots = slots
        #: The running attempts.
        self.attempts: dict[asyncio.Task[None], HeldLease] = {}
        self._loop = asyncio.get_running_loop()
        #: Every attempt starts with a copy, without context variables of other attempts.
        self._clean_context = contextvars.copy_context()
        self._leases = leases
        self._runner = runner
        self._log_writer = log_writer
        self._finisher = finisher
        self._renewer = renewer
        self._wakeups = wakeups
        self._drain = drain
        self._late_check_scheduled = False
        slots.attach(wakeups.claim.set, self.start_waiting)

    def room(self) -> int:
        """How many jobs to claim now."""
        return 0 if self._finisher.is_full else self.slots.room()

    @property
    def is_idle(self) -> bool:
        """No lease is held, and no job was found that could run."""
        return not self.attempts and not len(self._leases) and self._wakeups.is_idle

    # -- attempts ----------------------------------------------------------------------------

    def hold(self, attempts: list[Attempt], valid_until: float, limited: Collection[int]) -> None:
        now, moving = self._loop.time(), self._leases.moving
        for attempt in attempts:
            lease = HeldLease(attempt, valid_until, now, attempt.job_id in limited, moving)
            self._leases.add(lease)
            self.slots.add(lease)
        self._renewer.on_claimed(now, valid_until)
        self._wakeups.sweep_unless_recent(SWEEP_SECONDS)
        if self._drain.requested.is_set():
            self.give_back_waiting()
            return
        self.start_waiting()
        if self.slots.waiting:
            self._schedule_late_check()

    def start_waiting(self) -> None:
        if self._drain.requested.is_set():
            return
        now = self._loop.time()
        while (lease := self.slots.next()) is not None:
            if now >= lease.valid_until:  # as after a freeze: another worker may have it by now
                self._renewer.lose_expired((lease,), now)
            task = self._loop.create_task(
                self._run_attempt(lease), context=self._clean_context.copy()
            )
            self.attempts[task] = lease
            task.add_done_callback(self.attempts.pop)

    async def _run_attempt(self, lease: HeldLease) -> None:
        try:
            outcome = await self._runner.run(lease)
            try:
                if lease.log_buffer is not None:
                    await self._log_writer.flush_attempt(lease, lease.log_buffer)
            finally:
                self._finisher.submit(lease, outcome)
        except Exception as error:  # a bug of ours, but the job must not hang because of it
            log.error(
                "job %d: an internal error ended its attempt",
                lease.attempt.job_id,
                exc_info=not lease.attempt.policy.secret_args,
            )
            if lease.phase in OPEN:
                outcome = outcomes.of_exception(error, DEFAULT_RETRY, 0.0, lease.attempt)
                self._finisher.submit(lease, outcome)
        finally:
            if lease.phase in OPEN:
                self._leases.abandon(lease)
            self.slots.end(lease)
            self.start_waiting()
            self._wakeups.claim.set()

    # -- jobs that do not start --------------------------------------------------------------

    def _schedule_late_check(self) -> None:
        """Repeated for as long as jobs wait for a slot."""
        if not self._late_check_scheduled:
            self._late_check_scheduled = True
            self._loop.call_later(LATE_SECONDS, self._give_back_late)

    def _give_back_late(self) -> None:
        self._late_check_scheduled = False
        if not self._drain.requested.is_set():
            self._give_back(self.slots.give_back_late(), "all slots of its worker stayed busy")
            if self.slots.waiting:
                self._schedule_late_check()

    def give_back_waiting(self) -> None:
        self._give_back(self.slots.give_back(), "its worker drains")

    def _give_back(self, leases: list[HeldLease], reason: str) -> None:
        for lease in leases:
            is_lost = lease.was_stopped_by(StopReason.LEASE_LOST)
            text = f"returned to the queue unstarted: {reason}"
            outcome = Outcome(kind=OutcomeKind.GIVE_BACK, reason=text)
            self._finisher.submit(lease, None if is_lost else outcome)

    # -- the end of the worker ---------------------------------------------------------------

    async def stop(self, grace_seconds: float) -> None:
        """Waits for the running attempts, and stops those that outlast the grace period."""
        self.give_back_waiting()
        await self._wait_for_attempts(grace_seconds)
        for lease in self._leases.all():
            lease.stop(StopReason.DRAIN)
        if self.attempts:
            await asyncio.wait(set(self.attempts), timeout=STUCK_SECONDS + 1.0)
        # Jobs with a handler that cannot be stopped end last.
        for lease in self._leases.all():
            if lease.phase in OPEN:
                self._finisher.submit(lease, outcomes.of_stop(lease, 0.0))

    async def _wait_for_attempts(self, seconds: float) -> None:
        now, at_once = self._loop.time, asyncio.create_task(self._drain.at_once.wait())
        deadline = now() + seconds
        while self.attempts and not at_once.done() and (left := deadline - now()) > 0:
            await asyncio.wait(
                {at_once, *self.attempts}, timeout=left, return_when=asyncio.FIRST_COMPLETED
            )
        at_once.cancel()
