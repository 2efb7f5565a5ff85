"""Procrastinate on psycopg 3."""

from __future__ import annotations

from bench.contender import BULK, Contender
from bench.counting import tick

CONCURRENCY = 20


class Procrastinate(Contender):
    name = "procrastinate"
    terms = f"psycopg, concurrency={CONCURRENCY}; keeps finished jobs and events"
    package = "procrastinate"
    unfinished = "select count(*) from procrastinate_jobs where status in ('todo', 'doing')"

    async def open(self) -> None:
        import procrastinate

        connector = procrastinate.PsycopgConnector(
            conninfo=self.url, min_size=1, max_size=CONCURRENCY
        )
        self.app = procrastinate.App(connector=connector)

        @self.app.task(name="job")
        async def job(sent: float) -> None:
            tick(sent)

        self.job = job
        await self.app.open_async()

    async def install(self) -> None:
        await self.open()
        await self.app.schema_manager.apply_schema_async()

    async def enqueue(self, sent: float) -> None:
        await self.job.defer_async(sent=sent)

    async def enqueue_bulk(self, count: int) -> None:
        for start in range(0, count, BULK):
            await self.job.batch_defer_async(*[{"sent": 0.0}] * min(BULK, count - start))

    async def work(self) -> None:
        await self.app.run_worker_async(concurrency=CONCURRENCY)
