"""Clients that enqueue through the real Client, and retry where a retry is safe."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, cast

import msgspec

from freehold.app import Freehold
from freehold.client import Client, JobHandle
from freehold.errors import FreeholdError, StoreError
from freehold.lab.simulation.everyday_plans import KEY_TAG
from freehold.lab.simulation.machine import Machine, MachineLoop
from freehold.lab.simulation.network import Network
from freehold.lab.simulation.scenario import HORIZON_SECONDS, Call, JobPlan
from freehold.lab.simulation.step_plans import SignalPlan
from freehold.lab.simulation.tasks import Handlers
from freehold.lab.simulation.worker_machines import HistoryRecorder
from freehold.model.job import NewJob
from freehold.store.database import Database

_COUNT = 2
_RETRY_SECONDS = 0.3
#: Longer than a run.
_KEEP_SECONDS = 3600.0


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
        self._network = network
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

    def start_signals(
        self, loop: MachineLoop, signals: tuple[SignalPlan, ...]
    ) -> list[asyncio.Task[Any]]:
        return [
            loop.spawn(
                self._machines[plan.number % _COUNT], self._send(plan), f"signal {plan.number}"
            )
            for plan in signals
        ]

    async def _send(self, plan: SignalPlan) -> None:
        await asyncio.sleep(plan.at)
        if plan.at_wait:
            suspension = self._network.suspensions.setdefault(plan.name, asyncio.Event())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HORIZON_SECONDS - plan.at):
                    await suspension.wait()
        is_done = False
        while not is_done:
            is_done = await self._send_once(plan)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _send_once(self, plan: SignalPlan) -> bool:
        """Returns whether it is stored. Repeating it is safe, because the first value is kept."""
        which, name = plan.number % _COUNT, f"{self._prefix}signal{plan.number}"
        actor, info = self._machines[which].name, {"verb": "send_signal", "signal": plan.name}
        self._recorder.record(actor, "requested", call=name, info=info)
        try:
            store = self._clients[which].awaited
            value = msgspec.json.encode(name)
            is_first = await store.send_signal(plan.name, value, name, _KEEP_SECONDS)
        except StoreError as error:
            info = info | {"error": type(error).__name__}
            self._recorder.record(actor, "responded", call=name, info=info)
            return False
        self._recorder.record(actor, "responded", call=name, info=info | {"first": is_first})
        return True

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
                "waits": job.pending or bool(job.delay_seconds or job.waiting or job.start_by),
                **({"pending": True} if job.pending else {}),
                **_options(job),
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
            start_by=plan.start_by,
            **_key(plan),
            idempotency_key=f"k{call.number}.{index}" if call.idempotent else None,
        )
        arguments: dict[str, Any] = {
            "call": f"{self._prefix}c{call.number}.{index}",
            "runs": list(plan.runs),
        }
        if plan.parts:
            arguments["parts"] = list(plan.parts)
        return task.prepare_json(msgspec.json.encode(arguments), pending=plan.pending)


def _key(plan: JobPlan) -> dict[str, Any]:
    """Its tag names the key, which a job has only until a worker takes it."""
    option = plan.waiting
    if option is None:
        return {}
    kind = type(option).__name__.lower()
    return {kind: option, "tags": [f"{KEY_TAG}{kind}.{option.key}"]}


def _options(job: NewJob) -> dict[str, Any]:
    """What the rules about single options compare with."""
    if job.waiting is None:
        return {"start_by": job.start_by, "delay": job.delay_seconds} if job.start_by else {}
    waiting = job.waiting
    return {
        "waiting": job.tags[0].removeprefix(KEY_TAG),
        "replaces": "args" in waiting.replace,
        "debounce": job.delay_seconds,
        "at_most": waiting.at_most_seconds,
        "throttle": waiting.throttle_seconds,
    }


def _as_lists(results: list[JobHandle]) -> list[list[Any]]:
    return [[result.id, result.created] for result in results]
