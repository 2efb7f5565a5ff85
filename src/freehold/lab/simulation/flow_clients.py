"""Clients that store flows, and an operator that cancels and retries them as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

import msgspec

from freehold.client import Client, JobHandle
from freehold.errors import FreeholdError, StoreError
from freehold.flows import Batch
from freehold.lab.simulation.flow_plans import FlowAction, FlowPlan, MemberPlan, NodePlan
from freehold.lab.simulation.machine import Machine, MachineLoop
from freehold.lab.simulation.network import Network
from freehold.lab.simulation.tasks import Handlers
from freehold.lab.simulation.worker_machines import HistoryRecorder
from freehold.model.audit import Author
from freehold.model.flow import FlowState
from freehold.model.job import NewJob
from freehold.store.database import Database
from freehold.tasks import Task
from freehold.workflow_nodes import Node
from freehold.workflows import FlowMaker, Workflow

_RETRY_SECONDS = 0.3
#: More than a run has.
_FLOWS = 100


class _Maker(FlowMaker):
    """A maker of flows with a client of its own."""

    def __init__(self, client: Client) -> None:
        self._own = client

    @property
    def _client(self) -> Client:
        return self._own


class FlowClients:
    """One client and one operator, each on its own machine."""

    def __init__(
        self,
        recorder: HistoryRecorder,
        network: Network,
        handlers: Handlers,
        prefix: str,
    ) -> None:
        self._recorder = recorder
        self._handlers = handlers
        self._prefix = prefix
        self._machines = [Machine("flows"), Machine("flow_operator")]
        self._clients = [
            Client(cast(Database, network.link(machine)), lambda: network.clock.micros / 1e6)
            for machine in self._machines
        ]
        self._maker = _Maker(self._clients[0])

    def start(
        self, loop: MachineLoop, flows: tuple[FlowPlan, ...], actions: tuple[FlowAction, ...]
    ) -> list[asyncio.Task[Any]]:
        client, operator = self._machines
        tasks = [loop.spawn(client, self._store(plan), f"flow {plan.number}") for plan in flows]
        tasks += [loop.spawn(operator, self._act(each), f"act {each.number}") for each in actions]
        return tasks

    async def _store(self, plan: FlowPlan) -> None:
        """Not repeated: a flow without a known outcome may exist, or not."""
        await asyncio.sleep(plan.at)
        name = f"{self._prefix}f{plan.number}"
        members = [self._member(name, index, each) for index, each in enumerate(plan.members)]
        callbacks = {
            f"on_{moment}": self._job(f"{name}.{moment}", MemberPlan()) for moment in plan.callbacks
        }
        asked = [{"waits": each.delay is not None} for each in plan.members]
        asked += [{"waits": True, "pending": bool(each.sources)} for each in plan.nodes]
        info: dict[str, Any] = {"verb": "flow", "jobs": asked}
        self._recorder.record("flows", "requested", call=name, info=info)
        try:
            if plan.nodes:
                info = info | {"flow": await self._store_workflow(name, plan.nodes)}
            elif plan.is_open:
                info = info | {"flow": await self._fill(name, members, callbacks, plan.gap)}
            else:
                batch = await self._maker.abatch(members, name=name, **callbacks)
                info = info | {"flow": batch.id}
        except FreeholdError as error:
            info = info | {"error": type(error).__name__}
        self._recorder.record("flows", "responded", call=name, info=info)

    async def _store_workflow(self, name: str, plans: tuple[NodePlan, ...]) -> int:
        workflow = self._maker.workflow(name)
        async with workflow:
            nodes: list[Node[Any]] = []
            for index, plan in enumerate(plans):
                nodes.append(self._add_node(workflow, f"{name}.{index}", plan, nodes))
        return workflow.id

    def _add_node(
        self, workflow: Workflow, call: str, plan: NodePlan, nodes: list[Node[Any]]
    ) -> Node[Any]:
        task, after = self._task(plan.job, plan.on_failure), [nodes[n] for n in plan.sources]
        name, how = call.rpartition(".")[2], plan.on_failure
        if plan.group:
            calls = [f"{call}/{number}" for number in range(plan.group)]
            return workflow.map(task, calls, after=after, on_failure=how, name=name)
        gives = next((each for each in after if plan.gets and each._result is not None), None)
        kwargs: dict[str, Any] = {} if gives is None else {"given": gives.result}
        runs, adds = plan.job.runs, plan.job.adds
        return workflow.add(
            task, call, runs, adds, after=after, on_failure=how, name=name, **kwargs
        )

    async def _fill(
        self, name: str, members: list[NewJob], callbacks: dict[str, NewJob], gap: float
    ) -> int:
        """An open batch is sealed, however often that takes."""
        context = self._maker.aopen_batch(name, **callbacks)
        batch: Batch = await context.__aenter__()
        for member in members:
            await until_known(partial(batch.aadd, [member]), _RETRY_SECONDS)
            await asyncio.sleep(gap)
        await until_known(batch.aseal, _RETRY_SECONDS)
        return batch.id

    def _member(self, name: str, index: int, plan: MemberPlan) -> NewJob:
        return self._job(f"{name}.{index}", plan)

    def _job(self, call: str, plan: MemberPlan) -> NewJob:
        arguments = {"call": call, "runs": list(plan.runs), "adds": plan.adds}
        return self._task(plan).prepare_json(msgspec.json.encode(arguments))

    def _task(self, plan: MemberPlan, *tags: str) -> Task[..., Any, JobHandle]:
        return self._handlers.tasks["member"].using(
            target=plan.target, max_attempts=plan.max_attempts, delay=plan.delay, tags=tags
        )

    async def _act(self, action: FlowAction) -> None:
        await asyncio.sleep(action.at)
        store, name = self._clients[1].awaited, f"flow{action.number}"
        author = Author(name, "python", None)
        info: dict[str, Any] = {"verb": f"{action.verb}_flow"}
        self._recorder.record("flow_operator", "requested", call=name, info=info)
        try:
            found = await store.flows(_FLOWS)
            if action.verb == "retry":
                found = [each for each in found if each.state is not FlowState.SUCCEEDED]
            if found:
                flow = found[int(action.share * len(found))].id
                if action.verb == "cancel":
                    info = info | {"flow": flow, "done": await store.cancel_flow(flow, author)}
                else:  # a retry that was cut off is repeated, as its finding advises
                    await until_known(partial(store.retry_flow, flow, author), _RETRY_SECONDS)
                    info = info | {"flow": flow}
        except FreeholdError as error:
            info = info | {"error": type(error).__name__}
        self._recorder.record("flow_operator", "responded", call=name, info=info)


async def until_known(write: Callable[[], Awaitable[Any]], retry_seconds: float) -> None:
    """A repeated addition may add twice, which is no violation."""
    while True:
        try:
            await write()
        except StoreError:
            await asyncio.sleep(retry_seconds)
        except FreeholdError:  # canceled or sealed meanwhile
            return
        else:
            return
