"""ctx.batch and ctx.workflow: the flow of a handler's job, or the batch whose callback it is.

In coroutines their methods are awaited, in plain functions they return the value itself.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from typing import Any

from freehold.errors import BadInput
from freehold.model.flow import NODES_LIMIT, NodeDraft, check_member
from freehold.model.job import NewJob
from freehold.model.names import check_key
from freehold.model.state import State
from freehold.store.database import Database
from freehold.store.store import AsyncStore, Store
from freehold.tasks import Registry, Task
from freehold.worker.execution.step_store import StepStore
from freehold.worker.execution.steps import is_on
from freehold.worker.held_leases import HeldLease
from freehold.workflow_nodes import ResultOf, on_failure_of, prepare_node


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

    def call(self, verb: str, *args: Any) -> Any:
        """A verb of the store: a coroutine on the worker's event loop, the value in a thread."""
        if self.is_on_loop:
            return getattr(self._store, verb)(*args)
        return getattr(Store(self._database.session()), verb)(*args)

    def call_with_jobs(
        self, jobs: Sequence[NewJob], verb: str, lease: HeldLease, *args: Any
    ) -> Any:
        """A verb that stores jobs for an attempt, as the extensions of the app change them. Raises
        LeaseLost if it returns None."""
        extensions = self.tasks.extensions
        passed = extensions.before_enqueue(jobs)
        if self.is_on_loop:
            return self._stored(passed, verb, lease, args)
        new = extensions.run_blocking(passed)
        found = self.call(verb, *args, new, self.owner, lease.key)
        self.steps.check_written(lease, found is not None)
        return found

    async def _stored(
        self,
        passed: Coroutine[Any, Any, list[NewJob]],
        verb: str,
        lease: HeldLease,
        args: tuple[Any, ...],
    ) -> Any:
        found = await self.call(verb, *args, await passed, self.owner, lease.key)
        self.steps.check_written(lease, found is not None)
        return found


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
        return self._store.call("read_flow", self.id)

    def members(self, *states: State) -> Any:
        """All jobs of the batch in these states, as a list in the order of their ids."""
        return self._store.call("all_members", self.id, states)

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
        return self._store.call_with_jobs(new, "add_from_member", self._lease, self.id)


class WorkflowContext:
    """The workflow of one attempt, whose job is a node of it."""

    def __init__(self, lease: HeldLease, store: FlowStore) -> None:
        policy = lease.attempt.policy
        if policy.flow is None or policy.node is None:
            raise BadInput(
                f"job {lease.attempt.job_id} is no node of a workflow: ctx.workflow is for those"
            )
        self._lease = lease
        self._store = store
        self.id = policy.flow

    def read(self) -> Any:
        """The workflow as it is now, a `Flow`."""
        return self._store.call("read_flow", self.id)

    def nodes(self) -> Any:
        """Its nodes, a list of `FlowNode`, with their states."""
        return self._store.call("flow_nodes", self.id)

    def add(
        self,
        task: Task[Any, Any, Any],
        *args: Any,
        name: str,
        after: Sequence[str] | str = (),
        on_failure: str = "cancel",
        **kwargs: Any,
    ) -> Any:
        """Add a node to the workflow. Returns the id of its job.

        ``after``: names of nodes that it waits for; ``ctx.workflow.result_of(name)`` as an argument
        stands for the result of one. A node of this name that exists already is left as it is, so
        that an attempt that is repeated adds nothing twice. Only while this attempt owns its job.
        """
        check_key("the name of a node", name)
        job, results = prepare_node(task, args, kwargs)
        names = (after,) if isinstance(after, str) else tuple(after)
        sources = [(each, "") for each in names]
        sources += [(result.name, parameter) for parameter, result in results.items()]
        draft = NodeDraft(name, tuple(sources), on_failure_of(on_failure))
        return self._store.call_with_jobs([job], "add_node", self._lease, self.id, draft)

    def result_of(self, name: str) -> Any:
        """Stands for the result of a node, as an argument of `add`."""
        return ResultOf(0, check_key("the name of a node", name))
