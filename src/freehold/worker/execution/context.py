"""What a handler knows about its own attempt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from freehold.errors import BadInput
from freehold.model.job import Attempt
from freehold.worker.execution.fenced_transaction import FencedTransaction
from freehold.worker.held_leases import HeldLease, StopReason
from freehold.worker.job_log.buffer import JobLog

LONGEST_PAUSE_SECONDS = 30 * 86_400.0


class Fences(Protocol):
    def open(self, held: HeldLease, result: Any) -> FencedTransaction: ...


class NoFences:
    """Of handlers in a process of their own."""

    def open(self, held: HeldLease, result: Any) -> FencedTransaction:
        raise BadInput(
            f"task {held.attempt.task} runs in a process of its own, which has no connection to "
            'the store: leave out isolation="process" to use ctx.transaction()'
        )


class LeaseView:
    """The lease, as its handler may ask for it at any moment, from any thread."""

    def __init__(self, held: HeldLease, now: Callable[[], float]) -> None:
        self._held = held
        self._now = now

    @property
    def token(self) -> int:
        """Grows with every claim: hand it to outside systems, and let them refuse smaller ones."""
        return self._held.attempt.token

    @property
    def held(self) -> bool:
        """Whether this attempt still owns its job."""
        lost = self._held.stop_reason is StopReason.LEASE_LOST
        return not lost and self._now() < self._held.valid_until


class Context:
    """Given to handlers that have a parameter ``ctx``."""

    def __init__(
        self,
        held: HeldLease,
        now: Callable[[], float],
        voice: JobLog,
        fences: Fences,
        tenant: str | None,
    ) -> None:
        #: Whose job it is, where workers serve tenants; ``app.tenant(ctx.tenant)`` enqueues more.
        self.tenant = tenant
        self._held = held
        self._voice = voice
        self._fences = fences
        self.lease = LeaseView(held, now)

    @property
    def job(self) -> Attempt:
        """The job as it was claimed: job_id, task, queue, target, number of the attempt, limits."""
        return self._held.attempt

    @property
    def attempt(self) -> int:
        return self._held.attempt.number

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the handler should stop, or None while it should go on.

        A handler that has seen a reason and then returns nothing has stopped; one that returns a
        value has finished all the same.
        """
        reason = self._held.stop_reason
        if reason is not None:
            self._held.saw_stop = True
        return reason

    @property
    def canceled(self) -> bool:
        """Whether the handler should stop, whatever the reason. Coroutines are told anyway."""
        return self.stop_reason is not None

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell how far the attempt is. Never waits, never fails; only the latest is kept."""
        self._voice.progress(done, total, message)

    def log(self, message: str) -> None:
        """Keep a line with the job. Never waits, never fails; see `model.note` for the limits."""
        self._voice.log(message)

    def pause_queue(self, seconds: float, reason: str | None = None) -> None:
        """Let nothing more of this job's queue be claimed, anywhere, for so long: an API said 429.

        Never waits; it is written before the attempt's end is. What is claimed already goes on. A
        pause that lasts longer, such as a person's, stays as it is.
        """
        self._voice.pause_queue(_checked_seconds(seconds), reason)

    def transaction(self, result: Any = None) -> FencedTransaction:
        """The handler's own writes and the job's success, committed together or not at all.

        ``async with`` in coroutines, ``with`` in plain functions. Gives the driver's connection
        (psycopg, sqlite3) inside a transaction; pass it as ``connection=`` to enqueue more jobs
        in it. At the end of the block the job succeeds with ``result``, or LeaseLost is raised
        and everything is rolled back. An exception rolls back and is the attempt's own. Keep the
        block short: on PostgreSQL it holds back vacuum, in SQLite nobody else writes meanwhile,
        not even the lease's renewals.
        """
        return self._fences.open(self._held, result)


def _checked_seconds(seconds: object) -> float:
    if isinstance(seconds, int | float) and 0 < seconds <= LONGEST_PAUSE_SECONDS:
        return float(seconds)
    raise BadInput(f"seconds={seconds!r}: give a number above 0, at most 30 days")
