"""A producer process: several callers that enqueue, and retry where a retry is safe.

A lane belongs to one caller, which waits for each response. So the order of its jobs is the order
of their ids, and a job that runs out of that order has overtaken another.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from typing import Any

import msgspec

from freehold import Freehold
from freehold.client import Client, JobHandle
from freehold.errors import FreeholdError, StoreError
from freehold.model.job import NewJob
from freehold.worker.event_loop import run_loop
from tests.chaos.flow_producer import FlowCaller
from tests.chaos.plan import LIMITED_KEY, Plan
from tests.chaos.recorder import Recorder
from tests.chaos.tasks import Run, Tasks

_RETRY_SECONDS = 0.2
_LANES = 5
#: A new lane after this many calls, because a lane that is never empty grows without end.
_CALLS_PER_LANE = 40
_UNIQUE_KEYS = 60
_MAX_JOBS = 10
#: No more jobs are enqueued beyond this, so that a long outage leaves no huge backlog.
_MAX_READY = 3000


def produce(plan: Plan, url: str, name: str) -> None:
    app = Freehold(url)
    tasks = Tasks(app, plan.healed)
    callers = [Caller(plan, tasks, f"{name}.{number}") for number in range(plan.callers)]
    flows = FlowCaller(plan, app, tasks, f"{name}.f") if plan.flows_per_second else None
    run_loop(_produce(app, callers, flows))
    app.close()
    os._exit(0)


async def _produce(app: Freehold, callers: list[Caller], flows: FlowCaller | None) -> None:
    running = [caller.run(app._client) for caller in callers]
    await asyncio.gather(*running, *([] if flows is None else [flows.run()]))
    await app.aclose()


class Caller:
    """Makes one call after another."""

    def __init__(self, plan: Plan, tasks: Tasks, name: str) -> None:
        self._plan = plan
        self._tasks = tasks
        self._name = name
        self._chance = random.Random(f"{plan.seed}/{name}")
        self._recorder = Recorder(plan.record_folder, name)
        per_caller = plan.jobs_per_second / (plan.producers * plan.callers)
        self._pause = (1 + _MAX_JOBS) / 2 / per_caller
        self._calls = 0

    async def run(self, client: Client) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._chance.random() * self._pause
        while not self._plan.healed.exists():
            await asyncio.sleep(max(0.0, due - loop.time()))
            due = max(due + self._pause, loop.time() - 10 * self._pause)
            if self._calls % 20 == 19 and await self._is_backlog_full(client):
                due = loop.time() + 1.0
                continue
            await self._call(client)

    async def _is_backlog_full(self, client: Client) -> bool:
        try:
            return (await client.awaited.counts()).ready > _MAX_READY
        except StoreError:
            return False

    async def _call(self, client: Client) -> None:
        self._calls += 1
        name = f"{self._name}/{self._calls}"
        is_keyed = self._chance.random() < 0.8
        count = self._chance.randint(1, _MAX_JOBS)
        jobs = [self._job(f"{name}.{index}", is_keyed) for index in range(count)]
        while True:
            if await self._enqueue_once(client, name, jobs, is_keyed):
                return
            await asyncio.sleep(_RETRY_SECONDS)

    async def _enqueue_once(
        self, client: Client, name: str, jobs: list[NewJob], is_keyed: bool
    ) -> bool:
        """Returns whether the call is over. Without keys it is repeated only if nothing was
        written."""
        requested = [
            {"unique": job.unique_key, "key": job.idempotency_key, "waits": bool(job.delay_seconds)}
            for job in jobs
        ]
        self._recorder.record("requested", call=name, verb="enqueue", jobs=requested)
        try:
            results = await client.aenqueue(jobs)
        except FreeholdError as error:
            kind = type(error).__name__
            self._recorder.record("responded", call=name, verb="enqueue", error=kind)
            return not (kind == "StoreUnavailable" or (is_keyed and isinstance(error, StoreError)))
        self._recorder.record(
            "responded", call=name, verb="enqueue", results=list(_as_lists(results))
        )
        return True

    def _job(self, call: str, is_keyed: bool) -> NewJob:
        chance = self._chance
        lane = f"{self._name}/{self._calls // _CALLS_PER_LANE}/{chance.randrange(_LANES)}"
        seconds, timeout = _duration(chance)
        task = self._tasks.tasks[chance.choice(_TASKS)].using(
            priority=chance.choice((0, 0, 0, 3, -3)),
            delay=round(chance.uniform(0.1, 4.0), 2) if chance.random() < 0.06 else None,
            target=lane if chance.random() < 0.3 else None,
            unique_key=_unique(chance) if chance.random() < 0.04 else None,
            limit_key=LIMITED_KEY if chance.random() < 0.05 else None,
            max_attempts=chance.choice((3, 5, 5, 8)),
            timeout=timeout,
            idempotency_key=call if is_keyed else None,
        )
        arguments = {"call": call, "runs": _runs(chance, seconds)}
        return task.prepare_json(msgspec.json.encode(arguments))


_TASKS = ("plain",) * 12 + ("strict", "kept", "skipping", "fenced")


def _duration(chance: random.Random) -> tuple[float, float | None]:
    draw = chance.random()
    if draw < 0.02:
        return 1.6, 0.5  # ended by its timeout
    if draw < 0.05:
        return chance.uniform(0.5, 2.0), None
    if draw < 0.3:
        return chance.uniform(0.01, 0.2), 5.0
    return 0.0, None


def _runs(chance: random.Random, seconds: float) -> list[Run]:
    if seconds == 0.0 and chance.random() < 0.9:
        return []
    how = chance.choice(("return",) * 6 + ("error", "error", "later", "snooze", "give_up", "fail"))
    runs = [(round(seconds, 3), how)]
    if chance.random() < 0.3:
        runs.append((0.0, "error"))
    return runs


def _unique(chance: random.Random) -> str:
    return f"u{chance.randrange(_UNIQUE_KEYS)}"


def _as_lists(results: list[JobHandle]) -> Iterator[list[Any]]:
    return ([result.id, result.created] for result in results)
