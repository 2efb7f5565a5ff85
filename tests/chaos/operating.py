"""A process of people who cancel, pause, resume and retry; and who help on what waits for them."""

from __future__ import annotations

import asyncio
import os
import random

from freehold import Freehold
from freehold.errors import FreeholdError, StoreError
from freehold.model.operator_actions import OperatorVerb
from freehold.model.state import State
from freehold.operator import AsyncOperator
from freehold.store.types import JobFilter
from freehold.worker.event_loop import run_loop
from tests.chaos.pen import Pen
from tests.chaos.plan import Plan

_ACT_SECONDS = 0.4
#: Every so many acts they look for what waits for a person.
_TIDY_ACTS = 10
_VERBS = (
    OperatorVerb.CANCEL,
    OperatorVerb.CANCEL,
    OperatorVerb.PAUSE,
    OperatorVerb.RESUME,
    OperatorVerb.RETRY,
)
_REMEDY = {State.PAUSED: OperatorVerb.RESUME, State.PENDING: OperatorVerb.SUBMIT}
_MOST = 200


def operate(plan: Plan, url: str, name: str) -> None:
    app = Freehold(url)
    run_loop(_operate(plan, app, Pen(plan.books, name)))
    app.close()
    os._exit(0)


async def _operate(plan: Plan, app: Freehold, pen: Pen) -> None:
    people = People(app.aoperate, pen)
    chance = random.Random(f"{plan.seed}/operator")
    while not plan.healed.exists():
        await asyncio.sleep(_ACT_SECONDS)
        try:
            await people.meddle(chance)
        except StoreError:
            continue  # nothing was asked yet: they only looked
    await app.aclose()


class People:
    """Every act has a name of its own, by which its events can be told apart."""

    def __init__(self, operate: AsyncOperator, pen: Pen) -> None:
        self._operate = operate
        self._pen = pen
        self._acts = 0

    async def meddle(self, chance: random.Random) -> None:
        if self._acts % _TIDY_ACTS == 0:
            await self.tidy_up()
        page = await self._operate.jobs(JobFilter(limit=20))
        if page.jobs:
            await self._act(chance.choice(_VERBS), chance.choice(page.jobs).id)
        else:
            self._acts += 1

    async def tidy_up(self) -> None:
        """Bring on what waits for a person: heads that block their lanes, and what is paused."""
        self._acts += 1
        for state in (State.PAUSED, State.PENDING):
            page = await self._operate.jobs(JobFilter(states=frozenset({state}), limit=_MOST))
            for job in page.jobs:
                await self._act(_REMEDY[state], job.id)
        after = ""
        while lanes := await self._operate.lanes(after, _MOST):
            after = lanes[-1].target
            for lane in lanes:
                if lane.head is not None and lane.head_state is State.FAILED:
                    await self._act(OperatorVerb.CANCEL, lane.head)

    async def _act(self, verb: OperatorVerb, job_id: int) -> None:
        self._acts += 1
        name = f"{self._pen.name}/{self._acts}"
        self._pen.note("asked", job_id, call=name, verb=str(verb))
        try:
            answer = (await self._operate.act(verb, [job_id], name, None))[0]
        except FreeholdError as error:
            self._pen.note("told", job_id, call=name, verb=str(verb), error=type(error).__name__)
            return
        self._pen.note(
            "told", job_id, call=name, verb=str(verb), what=answer.what, state=str(answer.state)
        )
