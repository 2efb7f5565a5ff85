"""The fenced transaction: a handler's own writes and its job's success, together or not at all.

    begin -> the handler writes -> its log and the fenced success -> commit

If the lease was lost, or has expired by the database's clock, everything is rolled back. So of
two owners of one job only one's writes ever exist.

When the response to the commit is lost, it is unknown whether the commit happened. Then this
attempt writes nothing more and stops renewing its lease. If the commit happened, the job has
succeeded. If not, the lease runs out and recovery treats the job like that of any lost worker.
Writing an error instead would be fenced too, but the broken transaction may still lock the row on
the server, and the outcomes of other jobs would wait with it. Renewing the lease would wait there
too, or keep a lease alive without a running attempt.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Protocol

from freehold.errors import BadInput, LeaseLost, OutcomeUnknown
from freehold.model import payload
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.database import AsyncTransaction, Transaction
from freehold.store.store import AsyncStore, Store
from freehold.store.types import AttemptEnd, LogChunk
from freehold.telemetry import Telemetry, fields, log
from freehold.worker.event_loop import uninterrupted
from freehold.worker.held_leases import OPEN, OVER, HeldLease, HeldLeases, Phase, StopReason
from freehold.worker.job_log.buffer import LogSnapshot

_HAS_TRANSACTION = frozenset({Phase.IN_TRANSACTION, Phase.COMMITTING, Phase.FINISHED})


class TransactionStore(Protocol):
    def transaction(self) -> Transaction: ...

    def async_transaction(self) -> AsyncTransaction: ...


class FencedTransactions:
    """Opens the fenced transactions of one worker, and records their ends."""

    def __init__(
        self,
        database: TransactionStore,
        owner: str,
        leases: HeldLeases,
        telemetry: Telemetry,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.database = database
        self.owner = owner
        self.loop = loop
        self._leases = leases
        self._telemetry = telemetry

    def open(self, lease: HeldLease, result: Any) -> FencedTransaction:
        encoded = None if result is None else payload.encode("the result", result)
        return FencedTransaction(self, lease, encoded)

    def succeeded(self, lease: HeldLease) -> None:
        lease.has_committed = True
        lease.move_to(Phase.FINISHED)
        self._leases.remove(lease)
        self._telemetry.count("finished", label=OutcomeKind.SUCCESS.value)

    def lost(self, lease: HeldLease) -> None:
        lease.move_to(Phase.IN_TRANSACTION)
        lease.move_to(Phase.LOST)
        self._leases.remove(lease)
        self._telemetry.count("stale_writes", label="transaction")
        if lease.stop(StopReason.LEASE_LOST):
            self._telemetry.count("lost_leases")

    def unknown(self, lease: HeldLease) -> None:
        lease.move_to(Phase.FINISHED)
        self._leases.remove(lease)
        self._log_unknown(lease)

    def step_unknown(self, lease: HeldLease) -> None:
        """The next attempt reads whether the step was committed; this one must not write again."""
        self._leases.abandon(lease)
        self._log_unknown(lease)

    def _log_unknown(self, lease: HeldLease) -> None:
        attempt = lease.attempt
        log.warning(
            "job %d: the connection was lost during the commit of its transaction; if the "
            "job has not succeeded by it, the lease runs out and the job is tried again",
            attempt.job_id,
            extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
        )


class FencedTransaction:
    """``with`` in plain functions, ``async with`` in coroutines. Yields the driver's connection."""

    def __init__(
        self, transactions: FencedTransactions, lease: HeldLease, result: bytes | None
    ) -> None:
        self._transactions = transactions
        self._lease = lease
        self._result = result
        #: The lines that are committed with the success.
        self._log: LogSnapshot | None = None

    # -- plain functions ---------------------------------------------------------------------

    def __enter__(self) -> Any:
        self._check_is_blocking()
        self._enter()
        self._transaction = self._transactions.database.transaction()
        try:
            connection = self._transaction.begin()
        except BaseException:
            self._lease.move_to(Phase.RUNNING)
            raise
        self._lease.interrupt = self._transaction.interrupt
        if self._lease.stop_reason in OVER:  # just before
            self._transaction.interrupt()
        return connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lease.interrupt = None
        try:
            if error is not None:
                self._transaction.rollback()
            else:
                self._finish()
        finally:
            self._lease.move_to(Phase.RUNNING)

    def _finish(self) -> None:
        try:
            self._check(self._write_last(Store(self._transaction.session)))
        except BaseException:
            self._lease.move_to(Phase.IN_TRANSACTION)
            self._transaction.rollback()
            raise
        try:
            self._transaction.commit()
        except BaseException as error:
            self._not_committed(error)
            raise
        self._committed()

    # -- coroutines --------------------------------------------------------------------------

    async def __aenter__(self) -> Any:
        self._check_is_on_loop()
        self._enter()
        self._async_transaction = self._transactions.database.async_transaction()
        try:
            return await self._async_transaction.begin()
        except BaseException:
            self._lease.move_to(Phase.RUNNING)
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await uninterrupted(
                self._afinish() if error is None else self._async_transaction.rollback()
            )
        finally:
            self._lease.move_to(Phase.RUNNING)

    async def _afinish(self) -> None:
        try:
            self._check(await self._write_last(AsyncStore(self._async_transaction.session)))
        except BaseException:
            self._lease.move_to(Phase.IN_TRANSACTION)
            await self._async_transaction.rollback()
            raise
        try:
            await self._async_transaction.commit()
        except BaseException as error:
            self._not_committed(error)
            raise
        self._committed()

    # -- both --------------------------------------------------------------------------------

    def _check_is_blocking(self) -> None:
        if _running_loop() is not None:
            raise BadInput("in a coroutine write `async with ctx.transaction() as conn:`")

    def _check_is_on_loop(self) -> None:
        if _running_loop() is not self._transactions.loop:
            raise BadInput(
                "ctx.transaction() belongs to the worker's event loop: in a plain function write "
                "`with ctx.transaction() as conn:`"
            )

    def _enter(self) -> None:
        lease = self._lease
        if lease.phase in _HAS_TRANSACTION:
            what = "is finished" if lease.phase is Phase.FINISHED else "has a transaction open"
            raise BadInput(
                f"job {lease.attempt.job_id} {what} already: ctx.transaction() ends a job"
            )
        self._refuse_if_over()
        if not lease.move_to(Phase.IN_TRANSACTION):
            raise _lost(lease)

    def _refuse_if_over(self) -> None:
        lease = self._lease
        if lease.was_stopped_by(StopReason.TIMEOUT):
            raise TimeoutError(f"job {lease.attempt.job_id} ran longer than its timeout")
        if lease.phase not in OPEN or lease.was_stopped_by(StopReason.LEASE_LOST):
            raise _lost(lease)

    def _write_last(self, store: Store | AsyncStore) -> Any:
        """What is written before the commit. Returns whether the lease held: a bool, of an
        AsyncStore to be awaited."""
        self._log = self._close_log()
        ended, chunk = self._attempt_end(self._log)
        return store.finish_within(self._transactions.owner, ended, chunk)

    def _close_log(self) -> LogSnapshot | None:
        buffer = self._lease.log_buffer
        if buffer is None:
            return None
        buffer.close()
        return buffer.peek()

    def _attempt_end(self, snapshot: LogSnapshot | None) -> tuple[AttemptEnd, LogChunk | None]:
        """From here on the store decides whether the lease held, not the renewer."""
        self._refuse_if_over()
        lease, now = self._lease, self._transactions.loop.time()
        if not lease.move_to(Phase.COMMITTING):
            raise _lost(lease)
        ran = None if lease.started_at is None else now - lease.started_at
        outcome = Outcome(kind=OutcomeKind.SUCCESS, result=self._result, ran_seconds=ran)
        chunk = None if snapshot is None else snapshot.chunk(lease.key, now)
        return AttemptEnd(lease.attempt, outcome), chunk

    def _check(self, is_held: bool) -> None:
        if not is_held:
            self._transactions.lost(self._lease)
            raise _lost(self._lease)

    def _committed(self) -> None:
        self._transactions.succeeded(self._lease)
        if self._log is not None and self._lease.log_buffer is not None:
            self._lease.log_buffer.discard(self._log)

    def _not_committed(self, error: BaseException) -> None:
        if isinstance(error, OutcomeUnknown):
            self._transactions.unknown(self._lease)
        else:
            self._lease.move_to(Phase.IN_TRANSACTION)


def _lost(lease: HeldLease) -> LeaseLost:
    return LeaseLost(
        f"job {lease.attempt.job_id} no longer belongs to this attempt: its transaction was rolled "
        "back, and nothing of it was written"
    )


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
