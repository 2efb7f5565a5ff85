"""Leasehold, as a user gets it who reads nothing: every setting is the default."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable

from bench.counting import tick
from bench.sides.side import BULK, Side
from leasehold import Leasehold

TASK = "bench.job"
SLOW_TASK = "bench.slow"
LIMITED_QUEUE = "limited"
SLOW_SECONDS = 0.02
LONG_SECONDS = 0.1


class LeaseholdPostgres(Side):
    name = "leasehold"
    terms = "defaults; leases, fencing, history and events on"
    package = "leasehold"
    left = "select count(*) from leasehold.job where stage <> 'w'"

    async def open(self) -> None:
        self._define()

    def _define(self) -> None:
        self.app = Leasehold(self.url)

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


class LeaseholdSqlite(LeaseholdPostgres):
    name = "leasehold-sqlite"
    terms = "defaults; one file, synchronous=FULL; history and events on"
    left = "select count(*) from job where stage <> 'w'"
    on_postgres = False


class LeaseholdLimited(LeaseholdPostgres):
    """Beside the measured queue it serves one that is limited, whose jobs are not counted."""

    name = "leasehold-limited"
    left = "select count(*) from leasehold.job where queue = 'default'"

    async def open(self) -> None:
        await super().open()

        @self.app.task(name=SLOW_TASK, queue=LIMITED_QUEUE)
        async def slow() -> None:
            await asyncio.sleep(SLOW_SECONDS)

        self.slow = slow

    async def work(self) -> None:
        await self.app.arun_worker(queues=("default", LIMITED_QUEUE))


class LeaseholdClaimers(LeaseholdPostgres):
    """Many slots for the limited queue alone, whose jobs take a while."""

    name = "leasehold-claimers"

    async def open(self) -> None:
        await super().open()

        @self.app.task(name=SLOW_TASK, queue=LIMITED_QUEUE)
        async def slow() -> None:
            tick(0.0)
            await asyncio.sleep(LONG_SECONDS)

    async def work(self) -> None:
        await self.app.arun_worker(queues=(LIMITED_QUEUE,), concurrency=16)


class LeaseholdTenants(LeaseholdPostgres):
    """One process for all tenants."""

    name = "leasehold-tenants"

    async def work(self) -> None:
        await self.app.arun_worker(tenants="all")


def unfinished_in_file(url: str) -> int:
    if not os.path.exists(url):  # noqa: PTH110  (a URL of SQLite is a path)
        return 0
    with sqlite3.connect(f"file:{url}?mode=ro", uri=True) as connection:
        return int(connection.execute(LeaseholdSqlite.left).fetchone()[0])
