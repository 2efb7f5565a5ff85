"""People who cancel, pause, resume, retry: at random moments, and at the end to tidy up."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

from freehold.errors import FreeholdError, UniqueKeyTaken
from freehold.lab.simulation.invariants import InvariantChecker
from freehold.lab.simulation.machine import Machine, MachineLoop
from freehold.lab.simulation.network import Network
from freehold.lab.simulation.scenario import Operation
from freehold.lab.simulation.worker_machines import HistoryRecorder
from freehold.model.job import Job
from freehold.model.operator_actions import OperatorVerb
from freehold.model.state import LEASED, State
from freehold.operator import AsyncOperator
from freehold.store.database import Database
from freehold.store.store import AsyncStore

#: What brings a job on that waits for a person.
_REMEDY = {
    State.PAUSED: OperatorVerb.RESUME,
    State.PENDING: OperatorVerb.SUBMIT,
    State.FAILED: OperatorVerb.CANCEL,
}


class SimulatedOperators:
    """Every act has a name of its own, by which its events can be told apart."""

    def __init__(
        self,
        scribe: HistoryRecorder,
        network: Network,
        witness: InvariantChecker,
        loop: MachineLoop,
    ) -> None:
        self._scribe = scribe
        self._witness = witness
        self._loop = loop
        self._host = Machine("operator")
        self._store = AsyncStore(cast(Database, network.line(self._host)).async_session())
        self._operate = AsyncOperator(self._store)
        self._under_way: list[asyncio.Task[Any]] = []
        self._acts = 0
        self._network = network

    def begin(self, operation: Operation) -> None:
        if operation.at_end:
            self._network.interrupt = lambda job_id: self._interrupt(operation, job_id)
        else:
            self._spawn(operation, self._carry_out(operation))

    def _interrupt(self, operation: Operation, job_id: int) -> None:
        self._network.interrupt = None
        work = self._on_job(f"op{operation.number}", OperatorVerb(operation.verb), job_id)
        self._spawn(operation, work)

    def _spawn(self, operation: Operation, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.spawn(self._host, work, f"operation {operation.number}")
        self._under_way.append(task)

    async def _carry_out(self, operation: Operation) -> None:
        name = f"op{operation.number}"
        if operation.queue:
            await self._on_queue(name, operation.verb, operation.queue)
        elif self._witness.jobs:
            ids = self._choice(operation)
            await self._on_job(
                name, OperatorVerb(operation.verb), ids[int(operation.share * len(ids))]
            )

    def _choice(self, operation: Operation) -> list[int]:
        """Every other act is about jobs that run just now, if there are any."""
        seen = sorted(self._witness.jobs)
        running = [job_id for job_id in seen if self._witness.jobs[job_id].state in LEASED]
        return running if running and operation.number % 2 else seen

    async def _on_job(self, name: str, verb: OperatorVerb, job_id: int) -> None:
        self._scribe.note("operator", "asked", job=job_id, call=name, info={"verb": str(verb)})
        info: dict[str, Any] = {"verb": str(verb)}
        try:
            answer = (await self._operate.act(verb, [job_id], name, None))[0]
            info |= {"what": answer.what, "state": str(answer.state)}
        except UniqueKeyTaken as error:
            info |= {"error": "UniqueKeyTaken", "holder": error.holder}
        except FreeholdError as error:
            info |= {"error": type(error).__name__}
        self._scribe.note("operator", "told", job=job_id, call=name, info=info)

    async def _on_queue(self, name: str, verb: str, queue: str) -> None:
        info: dict[str, Any] = {"verb": verb, "queue": queue}
        self._scribe.note("operator", "asked", call=name, info=info)
        try:
            if verb == "pause_queue":
                await self._operate.pause_queue(queue, name)
            else:
                await self._operate.resume_queue(queue)
        except FreeholdError as error:
            info = info | {"error": type(error).__name__}
        self._scribe.note("operator", "told", call=name, info=info)

    # -- after healing -----------------------------------------------------------------------

    @property
    def are_done(self) -> bool:
        return all(task.done() for task in self._under_way)

    async def tidy_up(self) -> list[Job]:
        """Help on what waits for a person. Answers the jobs as they were found."""
        for queue in await self._operate.queues():
            if queue.paused:
                await self._on_queue(self._next(), "resume_queue", queue.name)
        jobs = await self._store.read(sorted(self._witness.jobs))
        for job in jobs.values():
            if _waits_for_a_person(job):
                await self._on_job(self._next(), _REMEDY[job.state], job.id)
        return list(jobs.values())

    def _next(self) -> str:
        self._acts += 1
        return f"tidy{self._acts}"


def _waits_for_a_person(job: Job) -> bool:
    return job.state in (State.PAUSED, State.PENDING) or (
        job.state is State.FAILED and job.stage is not None
    )
