"""Workflows: graphs of jobs, stored whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Literal, TypeVar, overload

from freehold.client import Client, JobHandle, Members
from freehold.errors import BadInput
from freehold.flows import Batch, BatchMaker, FlowHandle
from freehold.model.flow import Flow, FlowKind, FlowNode, NewFlow, NewNode, check_flow_name
from freehold.model.flow_graph import ShownNode, as_mermaid, as_text, shown
from freehold.model.job import NewJob
from freehold.model.names import check_key
from freehold.results import ResultHandle
from freehold.store.statements import Verb
from freehold.store.verbs.flow_actions import existing_flow
from freehold.store.verbs.workflows import create_workflow, flow_nodes
from freehold.tasks import Task
from freehold.workflow_nodes import After, Node, NodeList, jobs_of, with_jobs

T = TypeVar("T")


class Workflow(FlowHandle):
    """A workflow. In a ``with`` or ``async with`` block it gets its nodes, and is stored at the end
    of the block; if the block raises, nothing is stored."""

    def __init__(
        self,
        client: Client,
        name: str,
        flow: int = 0,
        *,
        key: str | None = None,
        on_failure: str = "cancel",
        connection: Any = None,
    ) -> None:
        super().__init__(client, flow, check_flow_name(name))
        self.key = None if key is None else check_key("the key of a workflow", key)
        #: False if a live workflow with this key existed already, whose id this is.
        self.created = False
        self._nodes = NodeList(on_failure)
        self._connection = connection

    def add(
        self,
        task: Task[Any, Any, ResultHandle[T]],
        *args: Any,
        after: After = None,
        on_failure: Literal["cancel", "hold", "run"] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Node[T]:
        """Add a node: a call of a task, whose arguments can be results of other nodes.

        It runs when the nodes have succeeded whose results it gets, and those of ``after``. If one
        of them fails or is canceled, it is canceled too; with ``on_failure="hold"`` it waits until
        that one was retried, with ``"run"`` it runs when all have ended, and gets None for a result
        that does not exist.
        """
        self._check_open()
        return self._nodes.add(task, args, kwargs, after, on_failure, name)

    def map(
        self,
        task: Task[Any, Any, ResultHandle[T]],
        items: Iterable[Any],
        *,
        after: After = None,
        on_failure: Literal["cancel", "hold", "run"] | None = None,
        name: str | None = None,
    ) -> Node[list[T]]:
        """Add a job of the task for each item, as one node: it has succeeded when all have."""
        self._check_open()
        return self._nodes.map(task, items, after, on_failure, name)

    def _check_open(self) -> None:
        if self.id:
            raise BadInput(
                f"workflow {self.id} ({self.name}) is stored: add nodes in the block, or from a "
                "handler of one of its nodes, with ctx.workflow.add"
            )

    # -- storing -----------------------------------------------------------------------------

    def __enter__(self) -> Workflow:
        self._check_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            jobs = self._checked()
            found, _ = self._client.store_members(jobs, self._storing, self._connection)
            self._stored(found)

    async def __aenter__(self) -> Workflow:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            jobs = self._checked()
            found, _ = await self._client.astore_members(jobs, self._storing, self._connection)
            self._stored(found)

    def _checked(self) -> list[NewJob]:
        self._nodes.check()
        if not self._nodes.nodes:
            raise BadInput(f"workflow {self.name!r} has no nodes: add some in the block")
        return jobs_of(self._nodes.nodes)

    def _storing(self, jobs: Sequence[NewJob]) -> Verb[Members]:
        new = NewFlow(kind=FlowKind.WORKFLOW, name=self.name, key=self.key)
        nodes = with_jobs(self._nodes.nodes, jobs)
        created = yield from create_workflow(new, nodes, within=self._connection is not None)
        return created, [job_id for node in nodes for job_id in created.jobs.get(node.number, ())]

    def _stored(self, created: Any) -> None:
        self.id = created.id
        self.created = created.created

    # -- reading -----------------------------------------------------------------------------

    def nodes(self) -> list[FlowNode]:
        """The nodes with their states."""
        return self._client.store.run(flow_nodes(self.id))

    async def anodes(self) -> list[FlowNode]:
        return await self._client.awaited.run(flow_nodes(self.id))

    def graph(self, format: Literal["text", "mermaid"] = "text") -> str:
        """The nodes with their states and what they wait for, as text or for Mermaid."""
        draw = _drawing(format)
        return draw(shown(self.nodes()) if self.id else _drafts(self._nodes.nodes))

    async def agraph(self, format: Literal["text", "mermaid"] = "text") -> str:
        draw = _drawing(format)
        return draw(shown(await self.anodes()) if self.id else _drafts(self._nodes.nodes))

    @overload
    def result(self, node: Node[T], timeout: float | timedelta | None = None) -> T: ...

    @overload
    def result(self, node: str, timeout: float | timedelta | None = None) -> Any: ...

    def result(self, node: str | Node[Any], timeout: float | timedelta | None = None) -> Any:
        """Wait until a node has ended. Returns what it has returned, as `JobHandle.result`."""
        return self._job_of(node, self.nodes()).result(timeout)

    @overload
    async def aresult(self, node: Node[T], timeout: float | timedelta | None = None) -> T: ...

    @overload
    async def aresult(self, node: str, timeout: float | timedelta | None = None) -> Any: ...

    async def aresult(self, node: str | Node[Any], timeout: float | timedelta | None = None) -> Any:
        """The same for asyncio."""
        return await self._job_of(node, await self.anodes()).aresult(timeout)

    def _job_of(self, node: str | Node[Any], nodes: Sequence[FlowNode]) -> JobHandle[Any]:
        name = node.name if isinstance(node, Node) else node
        for each in nodes:
            if each.name == name and each.job_id is not None:
                return JobHandle(self._client, name, each.job_id, False, False, None)
        known = ", ".join(each.name for each in nodes if each.job_id is not None)
        raise BadInput(f"workflow {self.id} has no job {name!r}: its nodes are {known}")


def _drawing(format: str) -> Callable[[Sequence[ShownNode]], str]:
    if format not in ("text", "mermaid"):
        raise BadInput(f'format={format!r}: choose "text" or "mermaid"')
    return as_mermaid if format == "mermaid" else as_text


def _drafts(nodes: Sequence[NewNode]) -> list[ShownNode]:
    """Of a workflow that is not stored yet."""
    return [
        ShownNode(node.number, node.name, "new", None, tuple(sorted({n for n, _ in node.sources})))
        for node in nodes
    ]


class FlowMaker(BatchMaker):
    """Makes batches and workflows through the client of an app."""

    def workflow(
        self,
        name: str,
        *,
        key: str | None = None,
        on_failure: Literal["cancel", "hold", "run"] = "cancel",
        connection: Any = None,
    ) -> Workflow:
        """A workflow, for a ``with`` block that adds its nodes.

        There is at most one live workflow with a ``key``: a second one is not stored, and has the
        id of the first. ``on_failure`` is that of nodes that name none. With ``connection`` it is
        stored in the caller's transaction.
        """
        make = partial(Workflow, self._client, name, key=key, on_failure=on_failure)
        return make(connection=connection)

    def flow(self, flow_id: int) -> FlowHandle:
        """The handle of a stored batch or workflow. Raises FlowNotFound."""
        return self._handle(self._client.store.run(existing_flow(flow_id)))

    async def aflow(self, flow_id: int) -> FlowHandle:
        """The same for asyncio."""
        return self._handle(await self._client.awaited.run(existing_flow(flow_id)))

    def _handle(self, found: Flow) -> FlowHandle:
        if found.kind is FlowKind.WORKFLOW:
            return Workflow(self._client, found.name, found.id, key=found.key)
        kind = Batch if found.kind is FlowKind.BATCH else FlowHandle
        return kind(self._client, found.id, found.name)
