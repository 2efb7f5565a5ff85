"""PgQueuer on asyncpg, with its fastest batch size."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from bench.contender import BULK, WIDE_TEXT, Contender, Retried, mixed
from bench.counting import tick

BATCH = 1000


class PgQueuer(Contender):
    name = "pgqueuer"
    terms = f"asyncpg, batch_size={BATCH}; keeps a log of finished jobs"
    package = "pgqueuer"
    unfinished = "select count(*) from pgqueuer"

    async def open(self) -> None:
        import asyncpg
        from pgqueuer.db import AsyncpgDriver
        from pgqueuer.queries import Queries

        self.driver = AsyncpgDriver(await asyncpg.connect(self.url))
        self.queries = Queries(self.driver)

    async def install(self) -> None:
        await self.open()
        await self.queries.install()

    async def enqueue(self, sent: float) -> None:
        await self.queries.enqueue("job", b"%f" % sent)

    def open_blocking(self) -> Callable[[float], None]:
        import psycopg
        from pgqueuer.adapters.drivers.psycopg import SyncPsycopgDriver
        from pgqueuer.adapters.persistence.queries import SyncQueries

        queries = SyncQueries(SyncPsycopgDriver(psycopg.connect(self.url, autocommit=True)))

        def enqueue(sent: float) -> None:
            queries.enqueue("job", b"%f" % sent)

        return enqueue

    async def enqueue_bulk(self, count: int) -> None:
        for start in range(0, count, BULK):
            part = min(BULK, count - start)
            await self.queries.enqueue(["job"] * part, [b"0"] * part, [0] * part)

    async def enqueue_mixed(self, count: int) -> None:
        payload = json.dumps({"sent": 0.0, "more": WIDE_TEXT}).encode()
        for start in range(0, count, BULK):
            queues, priorities = zip(*mixed(min(BULK, count - start)), strict=True)
            await self.queries.enqueue(list(queues), [payload] * len(queues), list(priorities))

    async def enqueue_retried(self, count: int, every: int) -> None:
        for start in range(0, count, BULK):
            payloads = [b"%d %d" % (n, every) for n in range(start, min(start + BULK, count))]
            part = len(payloads)
            await self.queries.enqueue(["retried"] * part, payloads, [0] * part)

    async def work(self) -> None:
        from pgqueuer import PgQueuer as App
        from pgqueuer.executors import DatabaseRetryEntrypointExecutor

        app = App(self.driver)

        @app.entrypoint("job")
        async def handle(job: Any) -> None:
            tick(float(job.payload or b"0"))

        run_retried = Retried()

        def retrying(parameters: Any) -> Any:
            return DatabaseRetryEntrypointExecutor(parameters, initial_delay=timedelta())

        @app.entrypoint("retried", executor_factory=retrying)
        async def handle_retried(job: Any) -> None:
            number, every = map(int, (job.payload or b"").split())
            run_retried(number, every)

        await app.run(batch_size=BATCH)
