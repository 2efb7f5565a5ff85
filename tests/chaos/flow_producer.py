"""A caller that stores batches, workflows and jobs with steps, and sends the signals for these.

Calls of enqueue and of workflows with a key are repeated until their outcome is known. A batch
whose outcome is unknown may exist, or not. Names have no slash: members of a group have one.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

import msgspec

from freehold import Freehold
from freehold.client import JobHandle
from freehold.errors import FreeholdError, StoreError
from freehold.flows import Batch
from freehold.lab.simulation.flow_clients import until_known
from freehold.lab.simulation.flow_plans import MemberPlan, NodePlan
from freehold.lab.simulation.step_plans import Part
from freehold.model.job import NewJob
from freehold.tasks import Task
from freehold.workflow_nodes import Node
from freehold.workflows import Workflow
from tests.chaos.plan import Plan
from tests.chaos.recorder import Recorder
from tests.chaos.tasks import Tasks

_RETRY_SECONDS = 0.2
_MOMENTS = ("success", "failure", "end")
_ENDS = ("return",) * 8 + ("error", "error", "fail", "give_up", "cancel", "snooze", "later")
_BATCH_SIZES = (0, 1, 2, 5, 8, 13, 60)
_KEYS = 4
#: Of open batches, those that no producer seals.
_LEFT_SHARE = 0.1


class FlowCaller:
    """Makes one call after another, and sends signals meanwhile."""

    def __init__(self, plan: Plan, app: Freehold, tasks: Tasks, name: str) -> None:
        self._plan = plan
        self._app = app
        self._tasks = tasks
        self._name = name
        self._chance = random.Random(f"{plan.seed}/{name}")
        self._recorder = Recorder(plan.record_folder, name)
        self._pause = plan.producers / plan.flows_per_second
        self._calls = 0
        self._senders: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._chance.random() * self._pause
        kinds = self._batch, self._open_batch, self._workflow, self._workflow, self._stepped
        while not self._plan.healed.exists():
            await asyncio.sleep(max(0.0, due - loop.time()))
            due = max(due + self._pause, loop.time() - 10 * self._pause)
            self._calls += 1
            await self._chance.choice(kinds)(f"{self._name}-{self._calls}")
        await asyncio.gather(*self._senders)

    # -- calls -------------------------------------------------------------------------------

    async def _batch(self, name: str) -> None:
        plans = self._members()

        async def store() -> int:
            jobs = [self._job(f"{name}.{index}", plan) for index, plan in enumerate(plans)]
            return (await self._app.abatch(jobs, name=name, **self._callbacks(name))).id

        await self._call(name, plans, store)

    async def _open_batch(self, name: str) -> None:
        """In parts; a part without a known outcome is added again."""
        plans = self._members()
        is_left = self._chance.random() < _LEFT_SHARE

        async def store() -> int:
            opening = self._app.aopen_batch(name, **self._callbacks(name))
            batch: Batch = await opening.__aenter__()
            for index, plan in enumerate(plans):
                job = self._job(f"{name}.{index}", plan)
                await until_known(partial(batch.aadd, [job]), _RETRY_SECONDS)
            if not is_left:
                await until_known(batch.aseal, _RETRY_SECONDS)
            return batch.id

        await self._call(name, plans, store)

    async def _workflow(self, name: str) -> None:
        plans = [self._node(position) for position in range(self._chance.choice((1, 3, 5, 8)))]
        key = f"key{self._chance.randrange(_KEYS)}" if self._chance.random() < 0.3 else None

        async def store() -> int:
            workflow = self._app.workflow(name, key=key)
            async with workflow:
                nodes: list[Node[Any]] = []
                for index, plan in enumerate(plans):
                    nodes.append(self._add_node(workflow, f"{name}.{index}", plan, nodes))
            return workflow.id

        known = False
        while not known:
            known = await self._call(name, plans, store) or key is None
            await asyncio.sleep(0.0 if known else _RETRY_SECONDS)

    async def _stepped(self, name: str) -> None:
        """A job with steps, that gathers or waits for a signal of its own name, or both."""
        chance = self._chance
        parts: list[Part] = [("step", "first", 0.0)]
        if chance.random() < 0.7:
            parts.append(("gather", "pages", float(chance.choice((1, 3, 7)))))
        if chance.random() < 0.5 or len(parts) == 1:
            parts.append(("signal", f"signal {name}", chance.choice((0.0, 0.0, 1.5))))
            self._send_later(f"signal {name}")
        parts.append(chance.choice((("step", "last", 0.2), ("sleep", "last", 0.7))))
        runs = [(0.0, chance.choice(("return", "return", "error")))]
        arguments = {"call": f"{name}.0", "runs": runs, "parts": parts}
        job = (
            self._tasks.tasks["stepped"]
            .using(idempotency_key=f"{name}.0", max_attempts=8)
            .prepare_json(msgspec.json.encode(arguments))
        )
        asked = [{"unique": None, "key": f"{name}.0", "waits": False}]
        while True:
            self._recorder.record("requested", call=name, verb="enqueue", jobs=asked)
            try:
                (stored,) = await self._app._client.aenqueue([job])
            except FreeholdError as error:
                kind = type(error).__name__
                self._recorder.record("responded", call=name, verb="enqueue", error=kind)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                results = [[stored.id, stored.created]]
                self._recorder.record("responded", call=name, verb="enqueue", results=results)
                return

    async def _call(
        self,
        name: str,
        plans: Sequence[MemberPlan] | Sequence[NodePlan],
        store: Callable[[], Awaitable[int]],
    ) -> bool:
        """Returns whether the outcome is known."""
        asked = [{"waits": isinstance(each, NodePlan) or each.delay is not None} for each in plans]
        self._recorder.record("requested", call=name, verb="flow", jobs=asked)
        try:
            flow = await store()
        except FreeholdError as error:
            kind = type(error).__name__
            self._recorder.record("responded", call=name, verb="flow", error=kind)
            return not isinstance(error, StoreError)
        self._recorder.record("responded", call=name, verb="flow", flow=flow)
        return True

    # -- signals -----------------------------------------------------------------------------

    def _send_later(self, signal: str) -> None:
        task = asyncio.create_task(self._send(signal, self._chance.uniform(0.0, 3.0)))
        self._senders.add(task)
        task.add_done_callback(self._senders.discard)

    async def _send(self, signal: str, delay: float) -> None:
        """A repeated one has another value; the first one that was stored holds."""
        await asyncio.sleep(delay)
        for number in count():
            call = f"{signal}~{number}"
            record = partial(self._recorder.record, call=call, verb="send_signal", signal=signal)
            record("requested")
            try:
                first = await self._app.asend_signal(signal, call)
            except FreeholdError as error:
                record("responded", error=type(error).__name__)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                record("responded", first=first)
                return

    # -- jobs --------------------------------------------------------------------------------

    def _members(self) -> list[MemberPlan]:
        return [self._member() for _ in range(self._chance.choice(_BATCH_SIZES))]

    def _member(self) -> MemberPlan:
        chance = self._chance
        seconds = chance.choice((0.0, 0.0, 0.0, 0.1, 0.5))
        is_planned = chance.random() < 0.4
        return MemberPlan(
            runs=((seconds, chance.choice(_ENDS)),) if is_planned else (),
            target=f"{self._name}/{self._calls}" if chance.random() < 0.1 else None,
            max_attempts=chance.choice((1, 3, 5)),
            delay=round(chance.uniform(0.1, 2.0), 2) if chance.random() < 0.05 else None,
            adds=chance.choice((1, 2)) if chance.random() < 0.08 else 0,
        )

    def _node(self, position: int) -> NodePlan:
        """Its sources are nodes before it, so that there is no cycle."""
        chance = self._chance
        number = min(position, chance.choice((0, 1, 1, 2, 3)))
        return NodePlan(
            self._member(),
            sources=tuple(sorted(chance.sample(range(position), number))),
            on_failure=chance.choice(("cancel", "cancel", "hold", "run")),
            group=chance.choice((0, 0, 0, 3, 12)),
            gets=chance.random() < 0.5,
        )

    def _add_node(
        self, workflow: Workflow, call: str, plan: NodePlan, nodes: list[Node[Any]]
    ) -> Node[Any]:
        task, after = self._task(plan.job), [nodes[number] for number in plan.sources]
        name, how = call.rpartition(".")[2], plan.on_failure
        if plan.group:
            calls = [f"{call}/{number}" for number in range(plan.group)]
            return workflow.map(task, calls, after=after, on_failure=how, name=name)
        gives = next((each for each in after if plan.gets and each._result is not None), None)
        given: dict[str, Any] = {} if gives is None else {"given": gives.result}
        runs, adds = list(plan.job.runs), plan.job.adds
        return workflow.add(task, call, runs, adds, after=after, on_failure=how, name=name, **given)

    def _callbacks(self, name: str) -> dict[str, NewJob]:
        chosen = [moment for moment in _MOMENTS if self._chance.random() < 0.7]
        return {f"on_{each}": self._job(f"{name}.{each}", MemberPlan()) for each in chosen}

    def _job(self, call: str, plan: MemberPlan) -> NewJob:
        arguments = {"call": call, "runs": plan.runs, "adds": plan.adds}
        return self._task(plan).prepare_json(msgspec.json.encode(arguments))

    def _task(self, plan: MemberPlan) -> Task[..., Any, JobHandle]:
        return self._tasks.tasks["member"].using(
            target=plan.target, max_attempts=plan.max_attempts, delay=plan.delay
        )
