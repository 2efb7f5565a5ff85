"""Freehold for the external side-by-side harness: BENCH_ALSO=bench/adapter.py.

The harness provides `Peer`, `tick` and `PEERS`. Freehold has its default settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from freehold import Freehold
from freehold.store.stage_sql import STAGE_SQL

_SCHEDULED = STAGE_SQL["scheduled"]

if TYPE_CHECKING:

    class Peer:
        def __init__(self, dsn: str) -> None:
            self.dsn = dsn

    PEERS: dict[str, type[Any]]

    def tick(sent: float = 0.0) -> None: ...


class FreeholdPeer(Peer):
    left = f"select count(*) from freehold.job where stage <> {_SCHEDULED}"
    table = "freehold.job"
    clone_done = """
        insert into freehold.history (id, created_at, finished_at, priority, attempt,
            max_attempts, lost_attempts, state, queue, task, args)
        select -g, now(), now(), 0, 1, 5, 0, 'succeeded', 'default', 'bench.job', '{{"t": 0}}'
        from generate_series(1, {n}) g"""
    clone_future = f"""
        insert into freehold.job (id, created_at, run_at, priority, max_attempts, stage, queue,
            task, args)
        select nextval('freehold.job_id'), now(), now() + interval '1 day', 0, 5, {_SCHEDULED},
            'default', 'bench.job', '{{{{"t": 0}}}}'
        from generate_series(1, {{n}}) g"""

    async def open(self) -> None:
        self._define()
        await self.app._client.awaited.now()  # the peers connect here too

    def _define(self) -> None:
        self.app = Freehold(self.dsn)

        @self.app.task(name="bench.job")
        async def job(t: float) -> None:
            tick(t)

        self.job = job

    async def setup(self) -> None:
        self._define()
        self.app.migrate()

    async def one(self, t: float) -> None:
        await self.job.aenqueue(t)

    async def bulk(self, n: int) -> None:
        for start in range(0, n, 5000):
            count = min(5000, n - start)
            await self.app.aenqueue_many([self.job.prepare(0.0) for _ in range(count)])

    async def work(self) -> None:
        await self.app.arun_worker()


PEERS["freehold"] = FreeholdPeer  # noqa: F821  (provided by the harness)
