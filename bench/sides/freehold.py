"""Freehold, as a user gets it who reads nothing: every setting is the default."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable

from bench.counting import tick
from bench.sides.side import BULK, Side
from freehold import Freehold

TASK = "bench.job"
SLOW_TASK = "bench.slow"
LIMITED_QUEUE = "limited"
SLOW_SECONDS = 0.02
LONG_SECONDS = 0.1


class FreeholdPostgres(Side):
    name = "freehold"
    terms = "defaults; leases, fencing, history and events on"
    package = "freehold"
    left = "select count(*) from freehold.job where stage <> 'w'"

    async def open(self) -> None:
        self._define()

    def _define(self) -> None:
        self.app = Freehold(self.url)

        @self.app.task(name=TASK)
        async def job(sent: float, more: str = "") -> None:
            tick(sent)

        self.job = job

    def opened(self) -> Callable[[float], None]:
        self._define()

        def one(sent: float) -> None:
            self.job.enqueue(sent)

        return one

    async def make(self) -> None:
        await self.open()
        self.app.migrate()

    async def one(self, sent: float) -> None:
        await self.job.aenqueue(sent)

    async def many(self, count: int) -> None:
        for start in range(0, count, BULK):
            jobs = [self.job.prepare(0.0) for _ in range(min(BULK, count - start))]
            await self.app.aenqueue_many(jobs)

    async def work(self) -> None:
        await self.app.arun_worker()


class FreeholdSqlite(FreeholdPostgres):
    name = "freehold-sqlite"
    terms = "defaults; one file, synchronous=FULL; history and events on"
    left = "select count(*) from job where stage <> 'w'"
    on_postgres = False


class FreeholdLimited(FreeholdPostgres):
    """Beside the measured queue it serves one that is limited, whose jobs are not counted."""

    name = "freehold-limited"
    left = "select count(*) from freehold.job where queue = 'default'"

    async def open(self) -> None:
        await super().open()

        @self.app.task(name=SLOW_TASK, queue=LIMITED_QUEUE)
        async def slow() -> None:
            await asyncio.sleep(SLOW_SECONDS)

        self.slow = slow

    async def work(self) -> None:
        await self.app.arun_worker(queues=("default", LIMITED_QUEUE))


class FreeholdClaimers(FreeholdPostgres):
    """Many slots for the limited queue alone, whose jobs take a while."""

    name = "freehold-claimers"

    async def open(self) -> None:
        await super().open()

        @self.app.task(name=SLOW_TASK, queue=LIMITED_QUEUE)
        async def slow() -> None:
            tick(0.0)
            await asyncio.sleep(LONG_SECONDS)

    async def work(self) -> None:
        await self.app.arun_worker(queues=(LIMITED_QUEUE,), concurrency=16)


class FreeholdTenants(FreeholdPostgres):
    """One process for all tenants."""

    name = "freehold-tenants"

    async def work(self) -> None:
        await self.app.arun_worker(tenants="all")


def unfinished_in_file(url: str) -> int:
    if not os.path.exists(url):  # noqa: PTH110  (a URL of SQLite is a path)
        return 0
    with sqlite3.connect(f"file:{url}?mode=ro", uri=True) as connection:
        return int(connection.execute(FreeholdSqlite.left).fetchone()[0])
