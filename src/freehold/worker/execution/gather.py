"""ctx.gather: jobs that a handler stores and waits for, without holding a slot.

first attempt         children, flow and step are stored under the lease; the job is suspended
the last child ends   a fold closes the flow and wakes the job
next attempt          the ends of the children become the value of the step, and are returned
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from freehold.errors import BadInput, JobCanceled, NoResult
from freehold.model import suspension
from freehold.model.flow import NODES_LIMIT, check_member
from freehold.model.job import NewJob
from freehold.model.retry import WAIT_LIMIT_SECONDS
from freehold.model.step import Step, StepKind
from freehold.results import value_of
from freehold.store.types import Gathered, GatheredEnd
from freehold.store_health import PASSING
from freehold.worker.execution.flows import FlowStore
from freehold.worker.execution.steps import AttemptSteps
from freehold.worker.held_leases import HeldLease

OnFailed = Literal["raise", "return"]
_RETRY_SECONDS = 0.2


class Gathering:
    """One call of ctx.gather."""

    def __init__(
        self,
        lease: HeldLease,
        steps: AttemptSteps,
        store: FlowStore,
        name: str,
        jobs: Iterable[NewJob],
        failed: OnFailed,
    ) -> None:
        if failed not in ("raise", "return"):
            raise BadInput(f'failed={failed!r}: choose "raise" or "return"')
        self._lease = lease
        self._steps = steps
        self._store = store
        self._extensions = store.tasks.extensions
        self._name = name
        self._failed = failed
        self._jobs = [check_member(job, "ctx.gather") for job in jobs]
        self._check_jobs()

    def _check_jobs(self) -> None:
        attempt = self._lease.attempt
        if len(self._jobs) > NODES_LIMIT:
            raise BadInput(
                f"ctx.gather({self._name!r}): {len(self._jobs):,} jobs are more than "
                f"{NODES_LIMIT:,}: gather in parts, or use a batch"
            )
        for job in self._jobs:
            if job.target is not None and job.target == attempt.target:
                raise BadInput(
                    f"ctx.gather({self._name!r}): a job of {job.task} has the target "
                    f"{job.target!r} of job {attempt.job_id} itself, which keeps its lane while it "
                    "waits: they would wait for each other; give it another target, or none"
                )

    def run(self) -> Any:
        """A coroutine on the worker's event loop, the results themselves in a thread."""
        return self._run_awaited() if self._store.is_on_loop else self._run_blocking()

    async def _run_awaited(self) -> list[Any]:
        self._steps.begin_wait(self._name)
        with self._steps.ending(self._name):
            found = self._found((await self._steps.stored()).get(self._name))
            if found is None and self._jobs:
                jobs = await self._extensions.before_enqueue(self._jobs)
                found = await self._repeated(self._storing(jobs))
            elif found is not None and found.ends is None:
                found = await self._repeated(self._finishing(found))
            return self._values(found)

    def _run_blocking(self) -> list[Any]:
        self._steps.begin_wait(self._name)
        with self._steps.ending(self._name):
            found = self._found(self._steps.stored_blocking().get(self._name))
            if found is None and self._jobs:
                jobs = self._extensions.run_blocking(self._extensions.before_enqueue(self._jobs))
                found = self._repeated_blocking(self._storing(jobs))
            elif found is not None and found.ends is None:
                found = self._repeated_blocking(self._finishing(found))
            return self._values(found)

    def _found(self, step: Step | None) -> Gathered | None:
        if step is None:
            return None
        self._steps.check_kind(step, StepKind.GATHER, StepKind.GATHERED)
        return Gathered.of_step(step.kind, step.value)

    def _storing(self, jobs: Sequence[NewJob]) -> tuple[Any, ...]:
        """A verb and its arguments."""
        number = self._steps.new_step(self._name).number
        return ("gather", self._store.owner, self._lease.key, self._name, number, jobs)

    def _finishing(self, children: Gathered) -> tuple[Any, ...]:
        is_hidden = any(job.policy.secret_result for job in self._jobs)
        hidden = is_hidden or bool(self._lease.attempt.policy.secret_args)
        key = self._lease.key
        return ("finish_gather", self._store.owner, key, self._name, children, hidden)

    async def _repeated(self, call: tuple[Any, ...]) -> Gathered:
        """Through an outage of the store, for as long as the lease can hold."""
        while True:
            try:
                return self._written(await self._store.call(*call))
            except PASSING as error:
                self._store.steps.check_held(self._lease, error)
                await asyncio.sleep(_RETRY_SECONDS)

    def _repeated_blocking(self, call: tuple[Any, ...]) -> Gathered:
        pause = threading.Event()
        while True:
            try:
                return self._written(self._store.call(*call))
            except PASSING as error:
                self._store.steps.check_held(self._lease, error)
                pause.wait(_RETRY_SECONDS)

    def _written(self, found: Any) -> Gathered:
        self._steps.check_written(found is not None)
        written: Gathered = found
        return written

    def _values(self, found: Gathered | None) -> list[Any]:
        """What the children have returned; suspends the job if one has not ended."""
        if found is None:
            return []
        if found.ends is None:
            self._steps.suspend(suspension.gather(found.flow), WAIT_LIMIT_SECONDS)
        return [self._value(each) for each in found.ends]

    def _value(self, child: GatheredEnd) -> Any:
        end, tasks = child.end, self._store.tasks
        try:
            if end is None:
                raise JobCanceled(f"job {child.job_id} was deleted", child.job_id)
            signature = tasks.get(end.task).definition.signature if end.task in tasks else None
            return value_of(child.job_id, end, signature)
        except NoResult as error:
            if self._failed == "raise":
                raise
            return error
