"""The context of a handler: its job, its lease, its log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from freehold.errors import BadInput
from freehold.model.job import Attempt
from freehold.model.meta import MetaValue
from freehold.model.schedule import Tick, tick_of
from freehold.worker.execution.fenced_transaction import FencedTransaction
from freehold.worker.held_leases import HeldLease, StopReason
from freehold.worker.job_log.buffer import JobLog, JobLogBuffer

LONGEST_PAUSE_SECONDS = 30 * 86_400.0


class TransactionOpener(Protocol):
    def open(self, lease: HeldLease, result: Any) -> FencedTransaction: ...


class NoTransactions:
    """For handlers in a child process."""

    def open(self, lease: HeldLease, result: Any) -> FencedTransaction:
        raise BadInput(
            f"task {lease.attempt.task} runs in a process of its own, which has no connection to "
            'the store: leave out isolation="process" to use ctx.transaction()'
        )


class LeaseView:
    """The handler's view of its lease. Readable at any time and from any thread."""

    def __init__(self, lease: HeldLease, now: Callable[[], float]) -> None:
        self._held_lease = lease
        self._now = now

    @property
    def token(self) -> int:
        """Grows with every claim: pass it to other systems, and let them refuse smaller ones."""
        return self._held_lease.attempt.token

    @property
    def held(self) -> bool:
        """Whether this attempt still owns its job."""
        lost = self._held_lease.stop_reason is StopReason.LEASE_LOST
        return not lost and self._now() < self._held_lease.valid_until


class Context:
    """Passed to handlers that have a parameter ``ctx``."""

    def __init__(
        self,
        lease: HeldLease,
        now: Callable[[], float],
        job_log: JobLog,
        transactions: TransactionOpener,
        tenant: str | None,
    ) -> None:
        #: The tenant that owns the job, if any; ``app.tenant(ctx.tenant)`` enqueues more for it.
        self.tenant = tenant
        self._held_lease = lease
        self._job_log = job_log
        self._transactions = transactions
        self.lease = LeaseView(lease, now)

    @property
    def job(self) -> Attempt:
        """The job as it was claimed: job_id, task, queue, target, number of the attempt, limits."""
        return self._held_lease.attempt

    @property
    def attempt(self) -> int:
        return self._held_lease.attempt.number

    @property
    def meta(self) -> dict[str, MetaValue]:
        """The metadata of the job, a copy."""
        return self._held_lease.attempt.meta

    @property
    def tick(self) -> Tick | None:
        """The tick of the schedule that made the job (``at``, ``missed``); None for other jobs."""
        return tick_of(self._held_lease.attempt.policy_json)

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the handler should stop; None while it should continue.

        A handler that has read a reason and then returns None counts as stopped. With any other
        value it has finished.
        """
        reason = self._held_lease.stop_reason
        if reason is not None:
            self._held_lease.saw_stop = True
        return reason

    @property
    def canceled(self) -> bool:
        """Whether the handler should stop, for any reason. Coroutines are canceled anyway."""
        return self.stop_reason is not None

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Record the progress of the attempt. Never waits, never fails; only the latest is kept."""
        self._job_log.progress(done, total, message)

    def log(self, message: str) -> None:
        """Keep a line with the job. Never waits, never fails; for limits see `model/job_log.py`."""
        self._job_log.log(message)

    def pause_queue(self, seconds: float, reason: str | None = None) -> None:
        """Pause this job's queue on all workers for so long, as after a 429 from an API.

        Never waits; the pause is written before the attempt's outcome. Jobs that are claimed
        already continue. A pause that lasts longer, as one by an operator, stays as it is.
        """
        self._job_log.pause_queue(_checked_seconds(seconds), reason)

    def transaction(self, result: Any = None) -> FencedTransaction:
        """The handler's own writes and the job's success, committed together or not at all.

        ``async with`` in coroutines, ``with`` in plain functions. Yields the driver's connection
        (psycopg, sqlite3) inside a transaction; pass it as ``connection=`` to enqueue more jobs
        in it. At the end of the block the job succeeds with ``result``, or LeaseLost is raised
        and everything is rolled back. An exception in the block rolls back and propagates. Keep
        the block short: on PostgreSQL it holds back vacuum, on SQLite it blocks every other
        write, lease renewals included.
        """
        return self._transactions.open(self._held_lease, result)


class LogBuffers(Protocol):
    def new_buffer(self, lease: HeldLease) -> JobLogBuffer: ...


class Contexts:
    """Makes the contexts of one worker's handlers."""

    def __init__(
        self,
        log_buffers: LogBuffers,
        transactions: TransactionOpener,
        now: Callable[[], float],
        tenant: str | None,
    ) -> None:
        self._log_buffers = log_buffers
        self._transactions = transactions
        self._now = now
        self._tenant = tenant

    def new(self, lease: HeldLease) -> Context:
        lease.log_buffer = self._log_buffers.new_buffer(lease)
        return Context(lease, self._now, lease.log_buffer, self._transactions, self._tenant)


def _checked_seconds(seconds: object) -> float:
    if isinstance(seconds, int | float) and 0 < seconds <= LONGEST_PAUSE_SECONDS:
        return float(seconds)
    raise BadInput(f"seconds={seconds!r}: give a number above 0, at most 30 days")
