"""An operator process: it cancels, pauses, resumes and retries jobs and whole flows, and tidies up
what waits for it."""

from __future__ import annotations

import asyncio
import os
import random

from freehold import Freehold
from freehold.errors import FreeholdError, StoreError
from freehold.model.flow import FlowKind, FlowState
from freehold.model.operator_actions import OperatorVerb
from freehold.model.state import State
from freehold.operator import AsyncOperator
from freehold.store.store import AsyncStore
from freehold.store.types import JobFilter
from freehold.worker.event_loop import run_loop
from tests.chaos.plan import Plan
from tests.chaos.recorder import Recorder

_ACTION_SECONDS = 0.4
#: After this many actions the operator looks for jobs that wait for it.
_TIDY_INTERVAL = 10
_VERBS = (
    OperatorVerb.CANCEL,
    OperatorVerb.CANCEL,
    OperatorVerb.PAUSE,
    OperatorVerb.RESUME,
    OperatorVerb.RETRY,
)
_ACTION_FOR = {State.PAUSED: OperatorVerb.RESUME, State.PENDING: OperatorVerb.SUBMIT}
_PAGE = 200
#: The share of actions on whole flows. Few of those are cancels.
_FLOW_SHARE = 0.2
_FLOW_VERBS = ("cancel_flow", "retry_flow", "retry_flow")
_NEWEST_FLOWS = 30


def operate(plan: Plan, url: str, name: str) -> None:
    app = Freehold(url)
    run_loop(_operate(plan, app, Recorder(plan.record_folder, name)))
    app.close()
    os._exit(0)


async def _operate(plan: Plan, app: Freehold, recorder: Recorder) -> None:
    operators = Operators(app.aoperator, app._client.awaited, recorder)
    chance = random.Random(f"{plan.seed}/operator")
    while not plan.healed.exists():
        await asyncio.sleep(_ACTION_SECONDS)
        try:
            await operators.act_at_random(chance)
        except StoreError:
            continue  # only a read failed
    await app.aclose()


class Operators:
    """Every action has its own name, which identifies its events."""

    def __init__(self, operator: AsyncOperator, store: AsyncStore, recorder: Recorder) -> None:
        self._operator = operator
        self._store = store
        self._recorder = recorder
        self._action_count = 0

    async def act_at_random(self, chance: random.Random) -> None:
        if self._action_count % _TIDY_INTERVAL == 0:
            await self.tidy_up()
        if chance.random() < _FLOW_SHARE:
            await self._act_on_flow(chance)
            return
        page = await self._operator.jobs(JobFilter(limit=20))
        if page.jobs:
            await self._perform(chance.choice(_VERBS), chance.choice(page.jobs).id)
        else:
            self._action_count += 1

    async def _act_on_flow(self, chance: random.Random) -> None:
        found = await self._operator.flows(limit=_NEWEST_FLOWS)
        unfinished = [flow for flow in found if flow.state is not FlowState.SUCCEEDED]
        if unfinished:
            verb = chance.choice(_FLOW_VERBS)
            await self._perform_on_flow(verb, chance.choice(unfinished).id)
        else:
            self._action_count += 1

    async def tidy_up(self) -> None:
        """Unblocks what waits for an operator: heads that block their lanes, paused jobs, batches
        without a producer, nodes that hold, retries that were cut off."""
        self._action_count += 1
        for state in (State.PAUSED, State.PENDING):
            page = await self._operator.jobs(JobFilter(states=frozenset({state}), limit=_PAGE))
            for job in page.jobs:
                if job.waits_for is None:  # not a node that waits for its sources
                    await self._perform(_ACTION_FOR[state], job.id)
        after = ""
        while lanes := await self._operator.lanes(after, _PAGE):
            after = lanes[-1].target
            for lane in lanes:
                if lane.head is not None and lane.head_state is State.FAILED:
                    await self._perform(OperatorVerb.CANCEL, lane.head)
        for resting in await self._store.resting_flows(_PAGE):
            is_batch = resting.flow.kind is FlowKind.BATCH
            await self._perform_on_flow("seal_flow" if is_batch else "retry_flow", resting.flow.id)

    async def _perform_on_flow(self, verb: str, flow: int) -> None:
        """The name begins as the checker expects of what acts on a whole flow."""
        self._action_count += 1
        name = f"flow/{self._recorder.name}/{self._action_count}"
        self._recorder.record("requested", call=name, verb=verb, flow=flow)
        try:
            done = await getattr(self._operator, verb)(flow, by=name)
        except FreeholdError as error:
            kind = type(error).__name__
            self._recorder.record("responded", call=name, verb=verb, flow=flow, error=kind)
        else:
            self._recorder.record("responded", call=name, verb=verb, flow=flow, done=done)

    async def _perform(self, verb: OperatorVerb, job_id: int) -> None:
        self._action_count += 1
        name = f"{self._recorder.name}/{self._action_count}"
        self._recorder.record("requested", job_id, call=name, verb=str(verb))
        try:
            result = (await getattr(self._operator, verb)(job_id, by=name))[0]
        except FreeholdError as error:
            self._recorder.record(
                "responded", job_id, call=name, verb=str(verb), error=type(error).__name__
            )
            return
        self._recorder.record(
            "responded",
            job_id,
            call=name,
            verb=str(verb),
            status=result.status,
            state=str(result.state),
        )
