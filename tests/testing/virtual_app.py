"""Real workers on a virtual loop, and a store in memory that records and can refuse statements."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from freehold import Freehold
from freehold.client import Client
from freehold.errors import StoreUnavailable
from freehold.model.history import Event
from freehold.store.open import open_memory
from freehold.store.statements import AsyncSession, Rows, StatementGroup
from freehold.telemetry import Telemetry
from freehold.testing import VirtualClock, VirtualLoop, virtual_worker
from freehold.worker.config import WorkerSettings
from freehold.worker.worker import Worker

T = TypeVar("T")


class RecordingDatabase:
    """A database that records the statements of workers; those named in `refused` fail, and those
    in `slow` take a while. The next response to one in `late_seconds` is that late."""

    def __init__(self, clock: VirtualClock) -> None:
        self._inner = open_memory(clock)
        self._clock = clock
        self._start = clock.micros
        self.seen: list[tuple[str, float]] = []
        self.refused: set[str] = set()
        self.slow: set[str] = set()
        self.late_seconds: dict[str, float] = {}
        self.has_no_notifications = False

    def async_session(self) -> AsyncSession:
        return _RecordingSession(self, self._inner.async_session())

    def record(self, group: StatementGroup) -> None:
        seconds = (self._clock.micros - self._start) / 1e6
        for statement in group.statements:
            self.seen.append((statement.name, seconds))
            if statement.name in self.refused:
                raise StoreUnavailable(f"{statement.name} was refused by the test")

    def times(self, name: str) -> list[float]:
        """The times at which a statement was sent, in seconds since the start."""
        return [seconds for seen, seconds in self.seen if seen == name]

    async def listen(self, on_notification: Callable[[str | None], None]) -> None:
        if self.has_no_notifications:
            await asyncio.Event().wait()
        await self._inner.listen(on_notification)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _RecordingSession:
    def __init__(self, database: RecordingDatabase, inner: AsyncSession) -> None:
        self._database = database
        self._inner = inner

    async def execute(self, group: StatementGroup) -> list[Rows]:
        self._database.record(group)
        if any(statement.name in self._database.slow for statement in group.statements):
            await asyncio.sleep(0.01)
        rows = await self._inner.execute(group)
        for statement in group.statements:
            if late := self._database.late_seconds.pop(statement.name, 0.0):
                await asyncio.sleep(late)
        return rows


class VirtualApp:
    """An app, its store and a clock; `run` runs a scenario on virtual time."""

    def __init__(self, seed: int = 0) -> None:
        self.clock = VirtualClock()
        self.database: Any = RecordingDatabase(self.clock)
        self.app = Freehold("sqlite://:memory:")
        self.app._swap_client(Client(self.database, self._seconds))
        self.telemetry = Telemetry()
        self._chance = random.Random(seed).random

    def _seconds(self) -> float:
        return self.clock.micros / 1e6

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        with asyncio.Runner(loop_factory=lambda: VirtualLoop(self.clock)) as runner:
            return runner.run(scenario)

    def worker(self, owner: str = "w1", **settings: Any) -> Worker:
        return virtual_worker(
            self.database,
            self.app.tasks,
            WorkerSettings(**settings),
            chance=self._chance,
            owner=owner,
            telemetry=self.telemetry,
        )

    def work_until_idle(self, owner: str = "w1", **settings: Any) -> None:
        async def work() -> None:
            assert await self.worker(owner, until_idle=True, **settings).run() == 0

        self.run(work())

    @asynccontextmanager
    async def working(self, owner: str = "w1", **settings: Any) -> AsyncIterator[Worker]:
        """A worker that drains at the end."""
        worker = self.worker(owner, **settings)
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(0.001)
        yield worker
        worker.drain()
        await running

    def state(self, job_id: int) -> str:
        return str(self.app._client.store.read([job_id])[job_id].state)

    def events(self, job_id: int) -> list[Event]:
        return self.app._client.store.events(job_id)

    async def until(self, condition: Callable[[], bool], within: float) -> float:
        """Seconds of virtual time until the condition holds, to a thousandth of `within`."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not condition():
            assert loop.time() - began <= within, f"not within {within:g} s of virtual time"
            await asyncio.sleep(max(0.001, within / 1000))
        return loop.time() - began


async def crash() -> None:
    """Cancels all tasks but the caller's, as kill -9 ends a process: nothing more is written."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.wait(others)


def task_of_a_second(virtual: VirtualApp, log: list[str]) -> Any:
    """Its jobs run for a second each, and log the queue that they are given."""

    @virtual.app.task(name="steady")
    async def steady(queue: str) -> None:
        log.append(queue)
        await asyncio.sleep(1.0)

    return steady
