"""What a handler can write through its context."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from freehold.errors import BadInput
from freehold.model.job import NewJob
from freehold.store.database import Database
from freehold.store.store import AsyncStore
from freehold.tasks import Registry
from freehold.telemetry import Telemetry
from freehold.worker.execution.fenced_transaction import FencedTransaction, FencedTransactions
from freehold.worker.execution.flows import BatchContext, FlowStore, WorkflowContext
from freehold.worker.execution.gather import Gathering, OnFailed
from freehold.worker.execution.step_store import StepStore
from freehold.worker.execution.step_transaction import StepTransaction
from freehold.worker.execution.steps import AttemptSteps
from freehold.worker.held_leases import HeldLease, HeldLeases


class HandlerStore(Protocol):
    def transaction(self, lease: HeldLease, result: Any) -> FencedTransaction: ...

    def step_transaction(
        self, lease: HeldLease, steps: AttemptSteps, name: str
    ) -> FencedTransaction: ...

    def steps(self, lease: HeldLease) -> AttemptSteps: ...

    def batch(self, lease: HeldLease) -> BatchContext: ...

    def workflow(self, lease: HeldLease) -> WorkflowContext: ...

    def gather(
        self,
        lease: HeldLease,
        steps: AttemptSteps,
        name: str,
        jobs: Iterable[NewJob],
        failed: OnFailed,
    ) -> Gathering: ...


class WorkerStore:
    """For handlers in the process of their worker. Built on its event loop."""

    def __init__(
        self,
        store: AsyncStore,
        database: Database,
        owner: str,
        leases: HeldLeases,
        telemetry: Telemetry,
        chance: Callable[[], float],
        tasks: Registry,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._transactions = FencedTransactions(database, owner, leases, telemetry, loop)
        self._steps = StepStore(store, database, owner, leases, telemetry)
        self._flows = FlowStore(store, database, owner, self._steps, tasks)
        self._chance = chance

    def transaction(self, lease: HeldLease, result: Any) -> FencedTransaction:
        return self._transactions.open(lease, result)

    def step_transaction(
        self, lease: HeldLease, steps: AttemptSteps, name: str
    ) -> FencedTransaction:
        return StepTransaction(self._transactions, lease, steps, name)

    def steps(self, lease: HeldLease) -> AttemptSteps:
        return AttemptSteps(lease, self._steps, self._chance)

    def batch(self, lease: HeldLease) -> BatchContext:
        return BatchContext(lease, self._flows)

    def workflow(self, lease: HeldLease) -> WorkflowContext:
        return WorkflowContext(lease, self._flows)

    def gather(
        self,
        lease: HeldLease,
        steps: AttemptSteps,
        name: str,
        jobs: Iterable[NewJob],
        failed: OnFailed,
    ) -> Gathering:
        return Gathering(lease, steps, self._flows, name, jobs, failed)


class NoStore:
    """For handlers in a child process."""

    def transaction(self, lease: HeldLease, result: Any) -> FencedTransaction:
        raise _in_a_process(lease, "ctx.transaction()")

    def step_transaction(
        self, lease: HeldLease, steps: AttemptSteps, name: str
    ) -> FencedTransaction:
        raise _in_a_process(lease, "ctx.transaction()")

    def steps(self, lease: HeldLease) -> AttemptSteps:
        raise _in_a_process(lease, "steps, sleeps and signals")

    def batch(self, lease: HeldLease) -> BatchContext:
        raise _in_a_process(lease, "ctx.batch")

    def workflow(self, lease: HeldLease) -> WorkflowContext:
        raise _in_a_process(lease, "ctx.workflow")

    def gather(
        self,
        lease: HeldLease,
        steps: AttemptSteps,
        name: str,
        jobs: Iterable[NewJob],
        failed: OnFailed,
    ) -> Gathering:
        raise _in_a_process(lease, "ctx.gather()")


def _in_a_process(lease: HeldLease, what: str) -> BadInput:
    return BadInput(
        f"task {lease.attempt.task} runs in a process of its own, which has no connection to "
        f'the store: leave out isolation="process" to use {what}'
    )
