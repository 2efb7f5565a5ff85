"""Operators that cancel, pause, resume and retry at random times, and tidy up at the end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from datetime import datetime
from typing import Any, cast

import msgspec

from freehold.errors import FreeholdError, UniqueKeyTaken
from freehold.lab.simulation.everyday_plans import BulkPlan, SchedulePlan
from freehold.lab.simulation.invariants import InvariantChecker
from freehold.lab.simulation.machine import Machine, MachineLoop
from freehold.lab.simulation.network import Network
from freehold.lab.simulation.scenario import Operation
from freehold.lab.simulation.worker_machines import HistoryRecorder
from freehold.model.audit import Author
from freehold.model.job import Job, NewJob
from freehold.model.operator_actions import OperatorVerb
from freehold.model.state import LEASED, State
from freehold.model.timing import Every
from freehold.operator import AsyncOperator
from freehold.store.database import Database
from freehold.store.store import AsyncStore
from freehold.store.types import JobFilter

#: The action that unblocks a job that waits for an operator.
_ACTION_FOR = {
    State.PAUSED: OperatorVerb.RESUME,
    State.PENDING: OperatorVerb.SUBMIT,
    State.FAILED: OperatorVerb.CANCEL,
}


#: Looks at a node that is held, until it is canceled.
_HOLD_LOOKS = 20


class SimulatedOperators:
    """Every action has its own name, which identifies its events."""

    def __init__(
        self,
        recorder: HistoryRecorder,
        network: Network,
        invariants: InvariantChecker,
        loop: MachineLoop,
        prefix: str,
    ) -> None:
        """``prefix``: the beginning of the calls that schedules name."""
        self._prefix = prefix
        self._recorder = recorder
        self._invariants = invariants
        self._loop = loop
        self._machine = Machine("operator")
        self._store = AsyncStore(cast(Database, network.link(self._machine)).async_session())
        self._operator = AsyncOperator(self._store)
        self._running: list[asyncio.Task[Any]] = []
        self._action_count = 0
        self._network = network
        self._held: Counter[int] = Counter()

    def begin(self, operation: Operation) -> None:
        if operation.at_end:
            self._network.interrupt = lambda job_id: self._interrupt(operation, job_id)
        else:
            self._spawn(operation, self._perform(operation))

    def _interrupt(self, operation: Operation, job_id: int) -> None:
        self._network.interrupt = None
        work = self._on_job(f"op{operation.number}", OperatorVerb(operation.verb), job_id)
        self._spawn(operation, work)

    def _spawn(self, operation: Operation, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.spawn(self._machine, work, f"operation {operation.number}")
        self._running.append(task)

    async def _perform(self, operation: Operation) -> None:
        name = f"op{operation.number}"
        if operation.queue:
            await self._on_queue(name, operation.verb, operation.queue)
        elif self._invariants.jobs:
            ids = self._candidates(operation)
            await self._on_job(
                name, OperatorVerb(operation.verb), ids[int(operation.share * len(ids))]
            )

    def _candidates(self, operation: Operation) -> list[int]:
        """Every second operation chooses among running jobs, if there are any."""
        known = sorted(self._invariants.jobs)
        running = [job_id for job_id in known if self._invariants.jobs[job_id].state in LEASED]
        return running if running and operation.number % 2 else known

    async def _on_job(self, name: str, verb: OperatorVerb, job_id: int) -> None:
        self._recorder.record(
            "operator", "requested", job=job_id, call=name, info={"verb": str(verb)}
        )
        info: dict[str, Any] = {"verb": str(verb)}
        try:
            result = (await getattr(self._operator, verb)(job_id, by=name))[0]
            info |= {"status": result.status, "state": str(result.state)}
        except UniqueKeyTaken as error:
            info |= {"error": "UniqueKeyTaken", "holder": error.holder}
        except FreeholdError as error:
            info |= {"error": type(error).__name__}
        self._recorder.record("operator", "responded", job=job_id, call=name, info=info)

    async def _on_queue(self, name: str, verb: str, queue: str) -> None:
        info: dict[str, Any] = {"verb": verb, "queue": queue}
        self._recorder.record("operator", "requested", call=name, info=info)
        try:
            if verb == "pause_queue":
                await self._operator.pause_queue(queue, name)
            else:
                await self._operator.resume_queue(queue)
        except FreeholdError as error:
            info = info | {"error": type(error).__name__}
        self._recorder.record("operator", "responded", call=name, info=info)

    def put_schedule(self, plan: SchedulePlan, every: float, ends_at: datetime) -> None:
        work = self._put_schedule(plan, every, ends_at)
        self._running.append(self._loop.spawn(self._machine, work, f"schedule {plan.name}"))

    async def _put_schedule(self, plan: SchedulePlan, every: float, ends_at: datetime) -> None:
        name = f"put{len(self._running)}"
        info: dict[str, Any] = {"verb": "put_schedule", "schedule": plan.name, "every": every}
        self._recorder.record("operator", "requested", call=name, info=info)
        args = msgspec.json.encode({"call": f"{self._prefix}schedule:{plan.name}", "runs": []})
        try:
            await self._operator.put_schedule(
                plan.name,
                Every(seconds=every),
                NewJob(task="plain", args=args),
                by=name,
                overlap=plan.overlap,
                catch_up=plan.catch_up,
                ends_at=ends_at,
            )
        except FreeholdError as error:
            info = info | {"error": type(error).__name__}
        self._recorder.record("operator", "responded", call=name, info=info)

    def start_bulk(self, plan: BulkPlan) -> None:
        self._running.append(
            self._loop.spawn(self._machine, self._start_bulk(plan), f"bulk {plan.number}")
        )

    async def _start_bulk(self, plan: BulkPlan) -> None:
        """Only stored: the workers carry it out."""
        name = f"bulk{plan.number}"
        info: dict[str, Any] = {"verb": f"bulk_{plan.verb}", "state": str(plan.state)}
        self._recorder.record("operator", "requested", call=name, info=info)
        try:
            chosen = JobFilter(states=frozenset({plan.state}))
            info["id"] = await self._store.start_bulk(
                plan.verb, chosen, None, Author(name, "python", None)
            )
        except FreeholdError as error:
            info = info | {"error": type(error).__name__}
        self._recorder.record("operator", "responded", call=name, info=info)

    # -- after healing -----------------------------------------------------------------------

    @property
    def are_done(self) -> bool:
        return all(task.done() for task in self._running)

    async def tidy_up(self) -> list[Job]:
        """Unblocks every job that waits for an operator. Returns the jobs as they were before."""
        for queue in await self._operator.queues():
            if queue.paused:
                await self._on_queue(self._next(), "resume_queue", queue.name)
        jobs = await self._store.read(sorted(self._invariants.jobs))
        for job in jobs.values():
            if job.waits_for is not None and job.state is State.PENDING:
                await self._end_hold(job)
            elif _waits_for_operator(job):
                await self._on_job(self._next(), _ACTION_FOR[job.state], job.id)
        return list(jobs.values())

    async def _end_hold(self, job: Job) -> None:
        """A node with on_failure="hold" waits for a person, and is canceled after some time."""
        if "hold" in job.tags:
            self._held[job.id] += 1
            if self._held[job.id] > _HOLD_LOOKS:
                await self._on_job(self._next(), OperatorVerb.CANCEL, job.id)

    def _next(self) -> str:
        self._action_count += 1
        return f"tidy{self._action_count}"


def _waits_for_operator(job: Job) -> bool:
    return job.state in (State.PAUSED, State.PENDING) or (
        job.state is State.FAILED and job.stage is not None
    )
