"""ctx.batch and ctx.workflow: the flow of a handler's job, or the batch whose callback it is.

In coroutines its methods are awaited, in plain functions they return the value itself.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from freehold.errors import BadInput, Refused, StoreUnavailable
from freehold.model.flow import NODES_LIMIT, Flow, NewNode, OnFailure, check_member
from freehold.model.job import Job, NewJob
from freehold.model.names import check_key
from freehold.model.state import State
from freehold.store.database import Database
from freehold.store.statements import Conflict, Verb, run
from freehold.store.store import AsyncStore
from freehold.store.verbs.flow_actions import existing_flow
from freehold.store.verbs.flow_members import flow_members
from freehold.store.verbs.flows import add_members
from freehold.store.verbs.workflows import add_nodes, flow_nodes
from freehold.tasks import Registry, Task
from freehold.worker.execution.step_store import StepStore
from freehold.worker.execution.steps import is_on
from freehold.worker.held_leases import HeldLease
from freehold.workflow_nodes import ResultOf, on_failure_of, prepare_node

T = TypeVar("T")
_TRIES = 20


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
        return self._store.run(existing_flow(self.id))

    def nodes(self) -> Any:
        """Its nodes, a list of `FlowNode`, with their states."""
        return self._store.run(flow_nodes(self.id))

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

        ``after``: names of nodes that it waits for; ``node_result(name)`` as an argument stands for
        the result of one. A node of this name that exists already is left as it is, so that an
        attempt that is repeated adds nothing twice. Only while this attempt owns its job.
        """
        check_key("the name of a node", name)
        job, results = prepare_node(task, args, kwargs)
        names = [after] if isinstance(after, str) else list(after)
        sources = [(each, "") for each in names]
        sources += [(result.name, parameter) for parameter, result in results.items()]
        draft = _Draft(name, sources, on_failure_of(on_failure))
        extended = self._store.extended([job])
        if isinstance(extended, list):
            return self._added(self._store.run(self._adding(draft, extended[0])))
        return self._add_awaited(draft, extended)

    async def _add_awaited(self, draft: _Draft, extended: Coroutine[Any, Any, list[NewJob]]) -> int:
        (job,) = await extended
        adding: Any = self._store.run(self._adding(draft, job))
        return self._added(await adding)

    def _adding(self, draft: _Draft, job: NewJob) -> Verb[tuple[int | None, Flow | None]]:
        """Numbers are drawn from what was read; another addition may take them first."""
        for _ in range(_TRIES):
            numbers = {}
            for node in (yield from flow_nodes(self.id)):
                numbers[node.name] = node.number
                if node.name == draft.name:
                    return node.job_id, None
            new = draft.node(self.id, numbers, job)
            try:
                jobs = yield from add_nodes(self.id, [new], self._store.owner, self._lease.key)
            except Conflict:
                continue
            flow = None if jobs is not None else (yield from existing_flow(self.id))
            return (None if jobs is None else jobs[new.number]), flow
        raise StoreUnavailable(f"workflow {self.id} kept changing while it was read: try again")

    def _added(self, answer: Any) -> int:
        job_id, flow = answer
        if flow is not None and flow.canceled_at is not None:
            raise Refused(f"workflow {self.id} ({flow.name}) is canceled: nothing was added")
        self._store.steps.check_written(self._lease, job_id is not None)
        added: int = job_id
        return added


def node_result(name: str) -> Any:
    """The result of a node, as an argument of a node that `ctx.workflow.add` adds."""
    return ResultOf(0, check_key("the name of a node", name))


class _Draft(NamedTuple):
    """A node to be added: its sources by name, with the parameters that get their results."""

    name: str
    sources: list[tuple[str, str]]
    on_failure: OnFailure

    def node(self, flow: int, numbers: dict[str, int], job: NewJob) -> NewNode:
        if len(numbers) >= NODES_LIMIT:
            raise BadInput(f"workflow {flow} has {NODES_LIMIT:,} nodes, which is the limit")
        for name, _ in self.sources:
            if name not in numbers:
                known = ", ".join(list(numbers)[:10])
                raise BadInput(f"workflow {flow} has no node {name!r}: it has {known}")
        return NewNode(
            number=max(numbers.values(), default=0) + 1,
            name=self.name,
            job=job,
            sources=tuple(dict.fromkeys((numbers[name], to) for name, to in self.sources)),
            on_failure=self.on_failure,
        )
