"""Freehold with default settings throughout."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable

from bench.contender import BULK, PRIORITIES, QUEUES, WIDE_TEXT, Contender, Retried, mixed
from bench.counting import tick
from freehold import Freehold, Retry
from freehold.store.stage_sql import STAGE_SQL

TASK = "bench.job"
RETRIED_TASK = "bench.retried"
SLOW_TASK = "bench.slow"
LIMITED_QUEUE = "limited"
SLOW_SECONDS = 0.02
LONG_SECONDS = 0.1


class FreeholdPostgres(Contender):
    name = "freehold"
    terms = "defaults; leases, fencing, history and events on"
    package = "freehold"
    unfinished = f"select count(*) from freehold.job where stage <> {STAGE_SQL['scheduled']}"

    async def open(self) -> None:
        self._define()

    def _define(self) -> None:
        self.app = Freehold(self.url)

        @self.app.task(name=TASK)
        async def job(sent: float, more: str = "") -> None:
            tick(sent)

        @self.app.task(name=RETRIED_TASK, retry=Retry(base_seconds=0.0))
        async def retried(number: int, every: int) -> None:
            run_retried(number, every)

        self.job = job
        self.retried = retried
        run_retried = Retried()

    def open_blocking(self) -> Callable[[float], None]:
        self._define()

        def enqueue(sent: float) -> None:
            self.job.enqueue(sent)

        return enqueue

    async def install(self) -> None:
        await self.open()
        self.app.migrate()

    async def enqueue(self, sent: float) -> None:
        await self.job.aenqueue(sent)

    async def enqueue_bulk(self, count: int) -> None:
        for start in range(0, count, BULK):
            jobs = [self.job.prepare(0.0) for _ in range(min(BULK, count - start))]
            await self.app.aenqueue_many(jobs)

    async def enqueue_mixed(self, count: int) -> None:
        tasks = {
            (queue, priority): self.job.using(queue=queue, priority=priority)
            for queue in QUEUES
            for priority in PRIORITIES
        }
        for start in range(0, count, BULK):
            chosen = mixed(min(BULK, count - start))
            await self.app.aenqueue_many([tasks[each].prepare(0.0, WIDE_TEXT) for each in chosen])

    async def enqueue_retried(self, count: int, every: int) -> None:
        for start in range(0, count, BULK):
            numbers = range(start, min(start + BULK, count))
            await self.app.aenqueue_many([self.retried.prepare(n, every) for n in numbers])

    async def work(self) -> None:
        await self.app.arun_worker()


class FreeholdSqlite(FreeholdPostgres):
    name = "freehold-sqlite"
    terms = "defaults; one file, synchronous=FULL; history and events on"
    unfinished = f"select count(*) from job where stage <> {STAGE_SQL['scheduled']}"
    on_postgres = False


class FreeholdLimited(FreeholdPostgres):
    """Also serves a limited queue; the jobs of that queue are not counted."""

    name = "freehold-limited"
    unfinished = "select count(*) from freehold.job where queue = 'default'"

    async def open(self) -> None:
        await super().open()

        @self.app.task(name=SLOW_TASK, queue=LIMITED_QUEUE)
        async def slow() -> None:
            await asyncio.sleep(SLOW_SECONDS)

        self.slow = slow

    async def work(self) -> None:
        await self.app.arun_worker(queues=("default", LIMITED_QUEUE))


class FreeholdClaimers(FreeholdPostgres):
    """Many slots for the limited queue only; its jobs run for some time."""

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
    if not os.path.exists(url):  # noqa: PTH110  (an SQLite URL is a path)
        return 0
    with sqlite3.connect(f"file:{url}?mode=ro", uri=True) as connection:
        return int(connection.execute(FreeholdSqlite.unfinished).fetchone()[0])
