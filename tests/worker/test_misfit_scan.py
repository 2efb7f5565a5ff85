"""A worker finds the misfits that its code fits, however many others are parked before them."""

from __future__ import annotations

import asyncio
import sqlite3

from freehold import NewJob
from freehold.model.state import Stage
from freehold.store.stage_sql import stage_byte
from tests.testing.virtual_app import VirtualApp

#: The first of them do not fit `job(text: str)`, the last one does.
_INSERT = f"""
with recursive many(n) as (select 1 union all select n + 1 from many where n < :count)
insert into job (id, created_at, stage, priority, max_attempts, queue, task, args, parked_until)
select n, 1, '{stage_byte(Stage.PARKED)}', 0, 1, 'default', 'job',
    case when n < :count then '{{"number": 1}}' else '{{"text": "fits"}}' end, :until
from many
"""


def insert_misfits(connection: sqlite3.Connection, count: int, until: int) -> None:
    connection.execute(_INSERT, {"count": count, "until": until})


def test_a_misfit_does_not_count_as_finished_by_its_worker() -> None:
    app = VirtualApp()

    @app.app.task(name="job")
    async def job(text: str) -> None: ...

    async def scenario() -> None:
        async with app.working():
            job.enqueue("fits")
            app.app._submit(NewJob(task="job", args=b'{"number": 1}'))
            await asyncio.sleep(30.0)
            assert app.app.operator.counts().parked == 1
            assert [each.finished for each in await app.app.aoperator.workers()] == [1]

    app.run(scenario())


def test_a_misfit_behind_thousands_of_others_is_run() -> None:
    """So many that the list is not read to its end before its start is read again."""
    app = VirtualApp()
    log: list[str] = []

    @app.app.task(name="job")
    async def job(text: str) -> None:
        log.append(text)

    async def scenario() -> None:
        with app.database._engine.transaction() as connection:
            insert_misfits(connection, 3000, app.clock.micros + 3600 * 1_000_000)
        async with app.working():
            await app.until(lambda: log == ["fits"], within=60.0)

    app.run(scenario())
