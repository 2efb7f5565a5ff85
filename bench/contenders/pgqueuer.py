"""PgQueuer on asyncpg, with its fastest batch size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.contender import BULK, Contender
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

    async def work(self) -> None:
        from pgqueuer import PgQueuer as App

        app = App(self.driver)

        @app.entrypoint("job")
        async def handle(job: Any) -> None:
            tick(float(job.payload or b"0"))

        await app.run(batch_size=BATCH)
