"""ctx.transaction(step=...): a handler's own writes and a step of its job, together or not at all.

Unlike ctx.transaction() it does not end the job. A later attempt finds the step and opens no
transaction: the block gets an `AlreadyStored`, which is false.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, NoReturn

from freehold.errors import BadInput, OutcomeUnknown
from freehold.store.store import AsyncStore, Store
from freehold.worker.execution.fenced_transaction import FencedTransaction, FencedTransactions
from freehold.worker.execution.steps import AttemptSteps
from freehold.worker.held_leases import HeldLease


class AlreadyStored:
    """In the place of a connection: an earlier attempt has committed the step."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, attribute: str) -> NoReturn:
        raise BadInput(
            f"step {self._name!r} was committed by an earlier attempt, and must not write again: "
            f"begin the block of ctx.transaction(step={self._name!r}) with `if connection:`"
        )


class StepTransaction(FencedTransaction):
    """``with`` in plain functions, ``async with`` in coroutines. Yields the driver's connection."""

    def __init__(
        self, transactions: FencedTransactions, lease: HeldLease, steps: AttemptSteps, name: str
    ) -> None:
        super().__init__(transactions, lease, None)
        self._steps = steps
        self._name = name
        self._is_stored = False

    # -- plain functions ---------------------------------------------------------------------

    def __enter__(self) -> Any:
        self._check_is_blocking()
        self._steps.begin(self._name)
        try:
            self._is_stored = self._name in self._steps.stored_blocking()
            return AlreadyStored(self._name) if self._is_stored else super().__enter__()
        except BaseException:
            self._steps.fail(self._name)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._steps.ending(self._name, error):
            if not self._is_stored:
                super().__exit__(kind, error, trace)

    # -- coroutines --------------------------------------------------------------------------

    async def __aenter__(self) -> Any:
        self._check_is_on_loop()
        self._steps.begin(self._name)
        try:
            self._is_stored = self._name in await self._steps.stored()
            return AlreadyStored(self._name) if self._is_stored else await super().__aenter__()
        except BaseException:
            self._steps.fail(self._name)
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._steps.ending(self._name, error), self._steps.interruptible():
            if not self._is_stored:
                await super().__aexit__(kind, error, trace)

    # -- both --------------------------------------------------------------------------------

    def _write_last(self, store: Store | AsyncStore) -> Any:
        self._refuse_if_over()
        step = self._steps.new_step(self._name)
        return store.put_step_within(self._transactions.owner, step)

    def _check(self, is_held: bool) -> None:
        self._steps.check_written(is_held)

    def _committed(self) -> None:
        """The job goes on."""

    def _not_committed(self, error: BaseException) -> None:
        if isinstance(error, OutcomeUnknown):
            self._transactions.step_unknown(self._lease)
