"""Clients that enqueue through the real Client, and repeat what they may repeat."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec

from freehold.app import Freehold
from freehold.client import Client
from freehold.errors import FreeholdError, StoreError
from freehold.lab.simulation.machine import Machine, MachineLoop
from freehold.lab.simulation.network import Network
from freehold.lab.simulation.scenario import Call, JobPlan
from freehold.lab.simulation.tasks import Handlers
from freehold.lab.simulation.worker_machines import HistoryRecorder
from freehold.model.job import Enqueued, NewJob
from freehold.store.database import Database

_COUNT = 2
_AGAIN_SECONDS = 0.3


class ProducerClients:
    """Two of them, each on a machine of its own."""

    def __init__(
        self,
        scribe: HistoryRecorder,
        network: Network,
        app: Freehold,
        handlers: Handlers,
        prefix: str = "",
    ) -> None:
        """``prefix``: what the names of their calls begin with."""
        self._scribe = scribe
        self._prefix = prefix
        self._handlers = handlers
        self._hosts = [Machine(f"client{number + 1}") for number in range(_COUNT)]
        self._clients = [
            Client(cast(Database, network.line(host)), lambda: network.clock.micros / 1e6)
            for host in self._hosts
        ]

    def start(self, loop: MachineLoop, calls: tuple[Call, ...]) -> list[asyncio.Task[Any]]:
        return [
            loop.spawn(self._hosts[call.number % _COUNT], self._make(call), f"call {call.number}")
            for call in calls
        ]

    async def _make(self, call: Call) -> None:
        await asyncio.sleep(call.at)
        which = call.number % _COUNT
        who = self._hosts[which].name
        jobs = [self._job(call, place, plan) for place, plan in enumerate(call.jobs)]
        for _ in range(call.repeats if call.idempotent else 1):
            is_done = False
            while not is_done:
                is_done = await self._try(who, self._clients[which], call, jobs)
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _try(self, who: str, client: Client, call: Call, jobs: list[NewJob]) -> bool:
        """Answers whether there is nothing left to do: a plain call is made once more only where
        nothing can have been written."""
        name = f"{self._prefix}c{call.number}"
        asked = [
            {
                "unique": job.unique_key,
                "key": job.idempotency_key,
                "waits": job.pending or bool(job.delay_seconds),
            }
            for job in jobs
        ]
        self._scribe.note(who, "asked", call=name, info={"verb": "enqueue", "jobs": asked})
        try:
            answers = await client.aenqueue(jobs)
        except FreeholdError as error:
            kind = type(error).__name__
            self._scribe.note(who, "told", call=name, info={"verb": "enqueue", "error": kind})
            return not call.idempotent or not isinstance(error, StoreError)
        self._scribe.note(
            who, "told", call=name, info={"verb": "enqueue", "answers": _shown(answers)}
        )
        return True

    def _job(self, call: Call, place: int, plan: JobPlan) -> NewJob:
        task = self._handlers.tasks[plan.task].using(
            queue=plan.queue,
            priority=plan.priority,
            delay=plan.delay,
            target=plan.target,
            unique_key=plan.unique_key,
            limit_key=plan.limit_key,
            max_attempts=plan.max_attempts,
            timeout=plan.timeout,
            idempotency_key=f"k{call.number}.{place}" if call.idempotent else None,
        )
        arguments = {"call": f"{self._prefix}c{call.number}.{place}", "runs": list(plan.runs)}
        return task.prepare_json(msgspec.json.encode(arguments), pending=plan.pending)


def _shown(answers: list[Enqueued]) -> list[list[Any]]:
    return [[answer.id, answer.created] for answer in answers]
