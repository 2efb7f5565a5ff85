"""The raw limit: the least SQL that makes a queue with history, driven by the least Python.

It has no expiring leases, retries, lanes or fencing. Two workers never get the same job, and each
finished job is kept. The difference to a real queue is the price of that queue's features.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor, RawCursor

from bench.contender import BULK, Contender
from bench.counting import tick

BATCH = 500
IDLE_SECONDS = 0.002

_TABLES = """
create table queue (id bigserial primary key, taken boolean not null default false,
                    args json not null);
create index queue_ready on queue (id) where not taken;
create table done (id bigint not null, finished_at timestamptz not null, args json not null);
"""
_TAKE = """
with ended as (
    delete from queue where id = any ($1::bigint[]) returning id, args
), kept as (
    insert into done select id, clock_timestamp(), args from ended
), free as (
    select array(select id from queue where not taken order by id limit 500
                 for update skip locked) as ids
)
update queue set taken = true from free where queue.id = any (free.ids)
returning queue.id, queue.args::text
"""


class Raw(Contender):
    name = "raw-sql"
    terms = f"claim and finish in one statement, batches of {BATCH}; COPY for bulk; keeps history"
    unfinished = "select count(*) from queue"

    async def install(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(_TABLES)

    async def open(self) -> None:
        self.connection = await AsyncConnection.connect(
            self.url, autocommit=True, prepare_threshold=0
        )
        self.cursor = AsyncRawCursor(self.connection)

    async def enqueue(self, sent: float) -> None:
        args = json.dumps({"sent": sent})
        await self.cursor.execute(b"insert into queue (args) values ($1) returning id", [args])
        await self.cursor.fetchall()

    def open_blocking(self) -> Callable[[float], None]:
        connection = psycopg.connect(self.url, autocommit=True, prepare_threshold=0)
        cursor = RawCursor(connection)

        def enqueue(sent: float) -> None:
            args = json.dumps({"sent": sent})
            cursor.execute(b"insert into queue (args) values ($1) returning id", [args])
            cursor.fetchall()

        return enqueue

    async def enqueue_bulk(self, count: int) -> None:
        for start in range(0, count, BULK):
            lines = b'{"sent": 0.0}\n' * min(BULK, count - start)
            async with self.cursor.copy(b"copy queue (args) from stdin") as copy:
                await copy.write(lines)

    async def work(self) -> None:
        ended: list[int] = []
        while True:
            await self.cursor.execute(_TAKE.encode(), [ended])
            rows: list[tuple[Any, ...]] = await self.cursor.fetchall()
            for _, args in rows:
                await _handle(json.loads(args)["sent"])
            if not rows and not ended:
                await asyncio.sleep(IDLE_SECONDS)
            ended = [row[0] for row in rows]


async def _handle(sent: float) -> None:
    tick(sent)
