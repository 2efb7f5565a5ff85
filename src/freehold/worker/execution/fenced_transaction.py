"""The fenced transaction: a handler's own writes and its job's success, together or not at all.

    begin -> the handler writes -> its words and the fenced success -> commit

If the lease was lost, or has expired by the database's clock, everything is rolled back. So of
two owners of one job only one's writes ever exist.

When the answer to the commit is lost, nobody here knows whether it happened. Then this attempt
writes nothing more and lets go of its lease. If the commit happened, the job has left and
nothing is owed. If it did not, the lease runs out, unrenewed, and recovery treats the job as
that of any lost worker. Writing an error instead would be fenced as well, but would wait, and
the endings of other jobs with it, for a row that the broken transaction may still keep locked
on the server; renewing the lease would wait there too, or keep a job alive that nobody runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Protocol

from freehold.errors import BadInput, LeaseLost, OutcomeUnknown
from freehold.model import payload
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.database import AsyncTransaction, Transaction
from freehold.store.store import AsyncStore, Store
from freehold.store.types import AttemptEnd, LogChunk
from freehold.telemetry import Telemetry, fields, log
from freehold.worker.held_leases import HeldLease, HeldLeases, StopReason
from freehold.worker.job_log.buffer import LogSnapshot


class TransactionStore(Protocol):
    def transaction(self) -> Transaction: ...

    def async_transaction(self) -> AsyncTransaction: ...


class Fencing:
    """What the fenced transactions of one worker share."""

    def __init__(
        self,
        database: TransactionStore,
        owner: str,
        hand: HeldLeases,
        telemetry: Telemetry,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.database = database
        self.owner = owner
        self.loop = loop
        self._hand = hand
        self._telemetry = telemetry

    def open(self, held: HeldLease, result: Any) -> FencedTransaction:
        encoded = None if result is None else payload.encode("the result", result)
        return FencedTransaction(self, held, encoded)

    def succeeded(self, held: HeldLease) -> None:
        held.finished = True
        self._hand.let_go(held)
        self._telemetry.count("finished", label=OutcomeKind.SUCCESS.value)

    def lost(self, held: HeldLease) -> None:
        self._hand.let_go(held)
        self._telemetry.count("stale_writes")
        if held.stop(StopReason.LEASE_LOST):
            self._telemetry.count("lost_leases")

    def unknown(self, held: HeldLease) -> None:
        held.finished = True
        self._hand.let_go(held)
        attempt = held.attempt
        log.warning(
            "job %d: nobody knows whether its transaction was committed: if not, its lease runs "
            "out and it is tried again",
            attempt.job_id,
            extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
        )


class FencedTransaction:
    """``with`` in plain functions, ``async with`` in coroutines; gives the driver's connection."""

    def __init__(self, fencing: Fencing, held: HeldLease, result: bytes | None) -> None:
        self._fencing = fencing
        self._held = held
        self._result = result

    # -- plain functions ---------------------------------------------------------------------

    def __enter__(self) -> Any:
        if _running_loop() is not None:
            raise BadInput("in a coroutine write `async with ctx.transaction() as conn:`")
        self._enter()
        self._blocking = self._fencing.database.transaction()
        try:
            return self._blocking.begin()
        except BaseException:
            self._held.fenced = False
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is not None:
                self._blocking.rollback()
            else:
                self._finish()
        finally:
            self._held.fenced = False

    def _finish(self) -> None:
        said = self._last_words()
        try:
            ended, noted = self._ended(said)
            store = Store(self._blocking.session)
            self._check(store.finish_within(self._fencing.owner, ended, noted))
        except BaseException:
            self._held.ended = False
            self._blocking.rollback()
            raise
        try:
            self._blocking.commit()
        except BaseException as error:
            self._not_committed(error)
            raise
        self._committed(said)

    # -- coroutines --------------------------------------------------------------------------

    async def __aenter__(self) -> Any:
        if _running_loop() is not self._fencing.loop:
            raise BadInput(
                "ctx.transaction() belongs to the worker's event loop: in a plain function write "
                "`with ctx.transaction() as conn:`"
            )
        self._enter()
        self._awaited = self._fencing.database.async_transaction()
        try:
            return await self._awaited.begin()
        except BaseException:
            self._held.fenced = False
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await _to_the_end(self._afinish() if error is None else self._awaited.rollback())
        finally:
            self._held.fenced = False

    async def _afinish(self) -> None:
        said = self._last_words()
        try:
            ended, noted = self._ended(said)
            store = AsyncStore(self._awaited.session)
            self._check(await store.finish_within(self._fencing.owner, ended, noted))
        except BaseException:
            self._held.ended = False
            await self._awaited.rollback()
            raise
        try:
            await self._awaited.commit()
        except BaseException as error:
            self._not_committed(error)
            raise
        self._committed(said)

    # -- what both do ------------------------------------------------------------------------

    def _enter(self) -> None:
        held = self._held
        if held.fenced or held.finished:
            what = "has a transaction open" if held.fenced else "is finished"
            raise BadInput(
                f"job {held.attempt.job_id} {what} already: ctx.transaction() ends a job"
            )
        self._refuse_if_too_late()
        held.fenced = True

    def _refuse_if_too_late(self) -> None:
        held = self._held
        if held.was_stopped_by(StopReason.TIMEOUT):
            raise TimeoutError(f"job {held.attempt.job_id} ran longer than its timeout")
        if held.ended or held.was_stopped_by(StopReason.LEASE_LOST):
            raise _lost(held)

    def _last_words(self) -> LogSnapshot | None:
        notes = self._held.notes
        if notes is None:
            return None
        notes.close()
        return notes.peek()

    def _ended(self, said: LogSnapshot | None) -> tuple[AttemptEnd, LogChunk | None]:
        """From here on the store says whether the lease held, not the keeper."""
        self._refuse_if_too_late()
        held, now = self._held, self._fencing.loop.time()
        held.ended = True
        ran = None if held.started is None else now - held.started
        outcome = Outcome(kind=OutcomeKind.SUCCESS, result=self._result, ran_seconds=ran)
        noted = None if said is None else said.noted(held.key, now)
        return AttemptEnd(held.attempt, outcome), noted

    def _check(self, kept: bool) -> None:
        if not kept:
            self._fencing.lost(self._held)
            raise _lost(self._held)

    def _committed(self, said: LogSnapshot | None) -> None:
        self._fencing.succeeded(self._held)
        if said is not None and self._held.notes is not None:
            self._held.notes.strike(said)

    def _not_committed(self, error: BaseException) -> None:
        if isinstance(error, OutcomeUnknown):
            self._fencing.unknown(self._held)
        else:
            self._held.ended = False


def _lost(held: HeldLease) -> LeaseLost:
    return LeaseLost(
        f"job {held.attempt.job_id} no longer belongs to this attempt: its transaction was rolled "
        "back, and nothing of it was written"
    )


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """A stop that comes meanwhile is obeyed afterwards: half a commit is no answer."""
    task = asyncio.ensure_future(work)
    stopped: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            stopped = error
    task.result()
    if stopped is not None:
        raise stopped
