"""ctx.batch: the batch of a handler's job, or the batch whose callback it is.

In coroutines its methods are awaited, in plain functions they return the value itself.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from freehold.errors import BadInput, Refused
from freehold.model.flow import NODES_LIMIT, Flow, check_member
from freehold.model.job import Job, NewJob
from freehold.model.state import State
from freehold.store.database import Database
from freehold.store.statements import Verb, run
from freehold.store.store import AsyncStore
from freehold.store.verbs.flow_actions import existing_flow
from freehold.store.verbs.flow_members import flow_members
from freehold.store.verbs.flows import add_members
from freehold.tasks import Registry
from freehold.worker.execution.step_store import StepStore
from freehold.worker.execution.steps import is_on
from freehold.worker.held_leases import HeldLease

T = TypeVar("T")


class FlowStore:
    """Reads and fills the flows of one worker's handlers."""

    def __init__(
        self,
        store: AsyncStore,
        database: Database,
        owner: str,
        steps: StepStore,
        tasks: Registry,
    ) -> None:
        self._store = store
        self._database = database
        self.tasks = tasks
        self.owner = owner
        self.steps = steps

    @property
    def is_on_loop(self) -> bool:
        """Whether the caller runs on the worker's event loop."""
        return is_on(self.steps.loop)

    def run(self, verb: Verb[T]) -> Coroutine[Any, Any, T] | T:
        """A coroutine on the worker's event loop, the value itself in a thread."""
        if self.is_on_loop:
            return self._store.run(verb)
        return run(verb, self._database.session())

    def extended(self, jobs: Sequence[NewJob]) -> Coroutine[Any, Any, list[NewJob]] | list[NewJob]:
        """What the extensions of the app make of new jobs."""
        extensions = self.tasks.extensions
        passed = extensions.before_enqueue(jobs)
        return passed if self.is_on_loop else extensions.run_blocking(passed)


class BatchContext:
    """The batch of one attempt."""

    def __init__(self, lease: HeldLease, store: FlowStore) -> None:
        policy = lease.attempt.policy
        self._lease = lease
        self._store = store
        self._is_member = policy.flow is not None
        flow = policy.callback_of if policy.flow is None else policy.flow
        if flow is None:
            raise BadInput(
                f"job {lease.attempt.job_id} is in no batch: ctx.batch is for its members"
            )
        self.id = flow

    def read(self) -> Any:
        """The batch as it is now, a `Flow`: state and counts."""
        return self._store.run(existing_flow(self.id))

    def members(self, *states: State) -> Any:
        """All jobs of the batch in these states, as a list in the order of their ids."""
        return self._store.run(_all_members(self.id, states))

    def add(self, jobs: Iterable[NewJob]) -> Any:
        """Add members to the batch. Returns their ids.

        All or none of them, and only while this attempt owns its job: a worker that was taken for
        dead adds nothing. An attempt that is repeated adds again.
        """
        new = [check_member(job, "ctx.batch.add") for job in jobs]
        if not self._is_member:
            raise BadInput(
                f"job {self._lease.attempt.job_id} is a callback of batch {self.id}, which has "
                "ended: only its members add to it"
            )
        if len(new) > NODES_LIMIT:
            raise BadInput(f"ctx.batch.add: give at most {NODES_LIMIT:,} jobs in a call")
        extended = self._store.extended(new)
        if isinstance(extended, list):
            return self._added(self._store.run(self._adding(extended)))
        return self._add_awaited(extended)

    async def _add_awaited(self, extended: Coroutine[Any, Any, list[NewJob]]) -> list[int]:
        adding: Any = self._store.run(self._adding(await extended))
        return self._added(await adding)

    def _adding(self, jobs: Sequence[NewJob]) -> Verb[tuple[list[int] | None, Flow | None]]:
        ids = yield from add_members(self.id, jobs, self._store.owner, self._lease.key)
        flow = None if ids is not None else (yield from existing_flow(self.id))
        return ids, flow

    def _added(self, answer: Any) -> list[int]:
        ids, flow = answer
        if flow is not None and flow.canceled_at is not None:
            raise Refused(f"batch {self.id} ({flow.name}) is canceled: nothing was added")
        self._store.steps.check_written(self._lease, ids is not None)
        added: list[int] = ids
        return added


def _all_members(flow: int, states: Sequence[State]) -> Verb[list[Job]]:
    found: list[Job] = []
    after: int | None = 0
    while after is not None:
        page = yield from flow_members(flow, after, states=states)
        found += page.jobs
        after = page.next
    return found
