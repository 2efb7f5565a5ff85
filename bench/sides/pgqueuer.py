"""PgQueuer on asyncpg, with the batches that make it fastest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.counting import tick
from bench.sides.side import BULK, Side

BATCH = 1000


class PgQueuer(Side):
    name = "pgqueuer"
    terms = f"asyncpg, batch_size={BATCH}; keeps a log of finished jobs"
    package = "pgqueuer"
    left = "select count(*) from pgqueuer"

    async def open(self) -> None:
        import asyncpg
        from pgqueuer.db import AsyncpgDriver
        from pgqueuer.queries import Queries

        self.driver = AsyncpgDriver(await asyncpg.connect(self.url))
        self.queries = Queries(self.driver)

    async def make(self) -> None:
        await self.open()
        await self.queries.install()

    async def one(self, sent: float) -> None:
        await self.queries.enqueue("job", b"%f" % sent)

    def opened(self) -> Callable[[float], None]:
        import psycopg
        from pgqueuer.adapters.drivers.psycopg import SyncPsycopgDriver
        from pgqueuer.adapters.persistence.queries import SyncQueries

        queries = SyncQueries(SyncPsycopgDriver(psycopg.connect(self.url, autocommit=True)))

        def one(sent: float) -> None:
            queries.enqueue("job", b"%f" % sent)

        return one

    async def many(self, count: int) -> None:
        for start in range(0, count, BULK):
            part = min(BULK, count - start)
            await self.queries.enqueue(["job"] * part, [b"0"] * part, [0] * part)

    async def work(self) -> None:
        from pgqueuer import PgQueuer as App

        app = App(self.driver)

        @app.entrypoint("job")
        async def job(given: Any) -> None:
            tick(float(given.payload or b"0"))

        await app.run(batch_size=BATCH)
