"""Writes and reads the steps of one worker's handlers.

Coroutines share a write: a flush starts as soon as the last one has ended, with all steps that came
meanwhile. Handlers in threads write for themselves.

A step has had its effect when it is written, so a write is repeated through an outage for as long
as the lease can hold; giving up would make the next attempt run the step again.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from freehold.errors import LeaseLost
from freehold.model.step import Step
from freehold.store.database import Database
from freehold.store.store import Store
from freehold.store.types import AwaitedSignal, LeaseKey, NewStep
from freehold.store_health import PASSING
from freehold.telemetry import Telemetry
from freehold.worker.held_leases import HeldLease, HeldLeases, Phase, StopReason

_RETRY_SECONDS = 0.2


class AsyncStepStore(Protocol):
    async def put_steps(self, owner: str, steps: Sequence[NewStep]) -> tuple[LeaseKey, ...]: ...

    async def read_steps(self, job_id: int) -> list[Step]: ...

    async def await_signal(
        self, owner: str, lease: LeaseKey, name: str, number: int, seconds: float, hidden: bool
    ) -> AwaitedSignal | None: ...


class Wait(NamedTuple):
    """For a signal: its name, the number of the step, the time that it may take, and whether its
    value is secret."""

    name: str
    number: int
    seconds: float
    hidden: bool


class StepStore:
    """For all handlers of one worker."""

    def __init__(
        self,
        store: AsyncStepStore,
        database: Database,
        owner: str,
        leases: HeldLeases,
        telemetry: Telemetry,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self._store = store
        self._database = database
        self._owner = owner
        self._leases = leases
        self._telemetry = telemetry
        self._unwritten: list[tuple[NewStep, asyncio.Future[bool]]] = []
        self._flushing: asyncio.Task[None] | None = None

    # -- coroutines --------------------------------------------------------------------------

    async def read(self, lease: HeldLease) -> list[Step]:
        while True:
            try:
                return await self._store.read_steps(lease.attempt.job_id)
            except PASSING as error:
                self.check_held(lease, error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def write(self, lease: HeldLease, step: NewStep) -> None:
        """Raises LeaseLost, and nothing was written."""
        while True:
            try:
                is_held = await self._write_with_others(step)
            except PASSING as error:
                self.check_held(lease, error)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            self.check_written(lease, is_held)
            return

    async def _write_with_others(self, step: NewStep) -> bool:
        written: asyncio.Future[bool] = self.loop.create_future()
        self._unwritten.append((step, written))
        if self._flushing is None:
            self._flushing = self.loop.create_task(self._flush())
        return await written

    async def _flush(self) -> None:
        try:
            while group := self._unwritten:
                self._unwritten = []
                await self._write_group(group)
        finally:
            self._flushing = None

    async def _write_group(self, group: list[tuple[NewStep, asyncio.Future[bool]]]) -> None:
        try:
            lost = await self._store.put_steps(self._owner, [step for step, _ in group])
        except Exception as error:
            if len(group) > 1 and not isinstance(error, PASSING):
                for each in group:  # the store refuses one of them
                    await self._write_group([each])
                return
            self._telemetry.count("store_errors", label="steps")
            for _, written in group:
                if not written.done():
                    written.set_exception(error)
            return
        for step, written in group:
            if not written.done():  # else its handler was stopped meanwhile
                written.set_result(step.lease not in lost)

    async def await_signal(self, lease: HeldLease, wait: Wait) -> AwaitedSignal:
        while True:
            try:
                found = await self._store.await_signal(self._owner, lease.key, *wait)
            except PASSING as error:
                self.check_held(lease, error)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            self.check_written(lease, found is not None)
            assert found is not None
            return found

    # -- threads -----------------------------------------------------------------------------

    def read_blocking(self, lease: HeldLease) -> list[Step]:
        store, pause = Store(self._database.session()), threading.Event()
        while True:
            try:
                return store.read_steps(lease.attempt.job_id)
            except PASSING as error:
                self.check_held(lease, error)
                pause.wait(_RETRY_SECONDS)

    def write_blocking(self, lease: HeldLease, step: NewStep) -> None:
        """The same for a handler that is a plain function."""
        store, pause = Store(self._database.session()), threading.Event()
        while True:
            try:
                lost = store.put_steps(self._owner, [step])
            except PASSING as error:
                self.check_held(lease, error)
                pause.wait(_RETRY_SECONDS)
                continue
            self.check_written(lease, not lost)
            return

    def await_signal_blocking(self, lease: HeldLease, wait: Wait) -> AwaitedSignal:
        store, pause = Store(self._database.session()), threading.Event()
        while True:
            try:
                found = store.await_signal(self._owner, lease.key, *wait)
            except PASSING as error:
                self.check_held(lease, error)
                pause.wait(_RETRY_SECONDS)
                continue
            self.check_written(lease, found is not None)
            assert found is not None
            return found

    # -- both --------------------------------------------------------------------------------

    def check_written(self, lease: HeldLease, is_held: bool) -> None:
        if is_held:
            self._telemetry.count("steps")
            return
        lease.move_to(Phase.LOST)
        self._leases.remove(lease)
        self._telemetry.count("stale_writes", label="step")
        if lease.stop(StopReason.LEASE_LOST):
            self._telemetry.count("lost_leases")
        raise lost(lease)

    def check_held(self, lease: HeldLease, error: BaseException) -> None:
        if lease.stop_reason is StopReason.LEASE_LOST or self.loop.time() >= lease.valid_until:
            raise lost(lease) from error


def lost(lease: HeldLease) -> LeaseLost:
    return LeaseLost(
        f"job {lease.attempt.job_id} no longer belongs to this attempt: its step was not stored"
    )
