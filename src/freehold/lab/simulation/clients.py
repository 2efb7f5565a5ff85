"""Clients that enqueue through the real Client, and retry where a retry is safe."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec

from freehold.app import Freehold
from freehold.client import Client, JobHandle
from freehold.errors import FreeholdError, StoreError
from freehold.lab.simulation.machine import Machine, MachineLoop
from freehold.lab.simulation.network import Network
from freehold.lab.simulation.scenario import Call, JobPlan
from freehold.lab.simulation.tasks import Handlers
from freehold.lab.simulation.worker_machines import HistoryRecorder
from freehold.model.job import NewJob
from freehold.store.database import Database

_COUNT = 2
_RETRY_SECONDS = 0.3


class ProducerClients:
    """Two clients, each on its own machine."""

    def __init__(
        self,
        recorder: HistoryRecorder,
        network: Network,
        app: Freehold,
        handlers: Handlers,
        prefix: str = "",
    ) -> None:
        """``prefix``: the beginning of every call's name."""
        self._recorder = recorder
        self._prefix = prefix
        self._handlers = handlers
        self._machines = [Machine(f"client{number + 1}") for number in range(_COUNT)]
        self._clients = [
            Client(cast(Database, network.link(machine)), lambda: network.clock.micros / 1e6)
            for machine in self._machines
        ]

    def start(self, loop: MachineLoop, calls: tuple[Call, ...]) -> list[asyncio.Task[Any]]:
        return [
            loop.spawn(
                self._machines[call.number % _COUNT], self._enqueue(call), f"call {call.number}"
            )
            for call in calls
        ]

    async def _enqueue(self, call: Call) -> None:
        await asyncio.sleep(call.at)
        which = call.number % _COUNT
        actor = self._machines[which].name
        jobs = [self._job(call, index, plan) for index, plan in enumerate(call.jobs)]
        for _ in range(call.repeats if call.idempotent else 1):
            is_done = False
            while not is_done:
                is_done = await self._enqueue_once(actor, self._clients[which], call, jobs)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _enqueue_once(
        self, actor: str, client: Client, call: Call, jobs: list[NewJob]
    ) -> bool:
        """Returns whether the call is over. A call without keys is never repeated, because its
        jobs might be stored twice."""
        name = f"{self._prefix}c{call.number}"
        requested = [
            {
                "unique": job.unique_key,
                "key": job.idempotency_key,
                "waits": job.pending or bool(job.delay_seconds),
            }
            for job in jobs
        ]
        self._recorder.record(
            actor, "requested", call=name, info={"verb": "enqueue", "jobs": requested}
        )
        try:
            results = await client.aenqueue(jobs)
        except FreeholdError as error:
            kind = type(error).__name__
            self._recorder.record(
                actor, "responded", call=name, info={"verb": "enqueue", "error": kind}
            )
            return not call.idempotent or not isinstance(error, StoreError)
        self._recorder.record(
            actor, "responded", call=name, info={"verb": "enqueue", "results": _as_lists(results)}
        )
        return True

    def _job(self, call: Call, index: int, plan: JobPlan) -> NewJob:
        task = self._handlers.tasks[plan.task].using(
            queue=plan.queue,
            priority=plan.priority,
            delay=plan.delay,
            target=plan.target,
            unique_key=plan.unique_key,
            limit_key=plan.limit_key,
            max_attempts=plan.max_attempts,
            timeout=plan.timeout,
            idempotency_key=f"k{call.number}.{index}" if call.idempotent else None,
        )
        arguments = {"call": f"{self._prefix}c{call.number}.{index}", "runs": list(plan.runs)}
        return task.prepare_json(msgspec.json.encode(arguments), pending=plan.pending)


def _as_lists(results: list[JobHandle]) -> list[list[Any]]:
    return [[result.id, result.created] for result in results]
