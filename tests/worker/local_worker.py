"""A worker inside the test's own process, and a table that its handlers write into."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from freehold import Freehold, Job, JobHandle, Retry
from freehold.model.job import Attempt
from freehold.model.job_log import LogLine
from freehold.store.types import ClaimRequest, QueueDemand
from freehold.worker.config import WorkerSettings
from freehold.worker.event_loop import run_loop
from freehold.worker.worker import Worker

ONCE = Retry(max_attempts=1)
AT_ONCE = Retry(base_seconds=0)
kinds = pytest.mark.parametrize("kind", ["coroutine", "function"])


class LocalWorker:
    """One app, on one store."""

    def __init__(self, app: Freehold) -> None:
        self.app = app
        self.is_postgres = app.url.startswith("postgres")
        self.sql("create table if not exists ledger (entry text)")

    def add(self, function: Callable[..., Any], **options: Any) -> int:
        """Make a handler a task and enqueue a job of it. Returns its id."""
        target = options.pop("target", None)
        task = self.app.task(name=function.__name__, **options)(function)
        handle: JobHandle = task.using(target=target).enqueue()
        return handle.id

    def run(self, **settings: Any) -> Worker:
        """Run a worker until no job is left that could run."""
        fields = {"until_idle": True, "concurrency": 1, **settings}

        async def main() -> Worker:
            worker = Worker(self.app._database, self.app.tasks, WorkerSettings(**fields))
            assert await worker.run() == 0
            await self.app._database.aclose()
            return worker

        return run_loop(main())

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Run SQL on a connection that is not the worker's. `{s}`: the schema."""
        if self.is_postgres:
            with psycopg.connect(self.app.url) as postgres:
                cursor = postgres.execute(self.named(statement).encode())
                return cursor.fetchall() if cursor.description else []
        sqlite = sqlite3.connect(self.app.url, timeout=10, isolation_level=None)
        try:
            return sqlite.execute(self.named(statement)).fetchall()
        finally:
            sqlite.close()

    def named(self, statement: str) -> str:
        return statement.replace("{s}", "freehold." if self.is_postgres else "")

    def ledger(self) -> list[str]:
        return [entry for (entry,) in self.sql("select entry from ledger order by entry")]

    def job(self, job_id: int) -> Job:
        return self.app._client.store.read([job_id])[job_id]

    def log(self, job_id: int) -> list[LogLine]:
        return self.app._client.store.read_log(job_id)

    def lines(self, job_id: int) -> list[str]:
        return [line.line for line in self.log(job_id)]

    # -- another worker takes the job --------------------------------------------------------

    def expire(self, job_id: int) -> None:
        past = "'2000-01-01'" if self.is_postgres else "0"
        self.sql(f"update {{s}}job set lease_expires_at = {past} where id = {job_id}")

    def steal(self, job_id: int) -> Attempt:
        """The lease has run out, the job is recovered, and another owner claims it."""
        self.expire(job_id)
        store = self.app._client.store
        store.recover(10, 0.5)  # or the worker's own sweeper did it already
        request = ClaimRequest(
            owner="thief", lease_seconds=60.0, demands=(QueueDemand("default", 1),)
        )
        (attempt,) = store.claim(request)
        assert attempt.job_id == job_id
        return attempt


def opened(url: str) -> Iterator[LocalWorker]:
    """For fixtures: a worker on this store, closed at the end."""
    app = Freehold(url)
    app.migrate()
    try:
        yield LocalWorker(app)
    finally:
        app.close()


def entry(text: str) -> str:
    return f"insert into ledger values ('{text}')"


async def put(connection: Any, statement: str) -> None:
    """Execute on a connection of either driver, in a coroutine."""
    result = connection.execute(statement)
    if inspect.isawaitable(result):
        await result


def handler(kind: str, body: Callable[[Any, Any], None], result: Any = None) -> Callable[..., Any]:
    """A handler with a fenced transaction: a coroutine or a plain function around one body.

    The body gets the context and a function that executes a statement in the transaction.
    """

    async def coroutine(ctx: Any) -> None:
        statements: list[str] = []
        async with ctx.transaction(result=result) as connection:
            await put(connection, "select 1")
            body(ctx, statements.append)
            for statement in statements:
                await put(connection, statement)

    def function(ctx: Any) -> None:
        with ctx.transaction(result=result) as connection:
            connection.execute("select 1")
            body(ctx, connection.execute)

    return coroutine if kind == "coroutine" else function


def writes(_ctx: Any, execute: Callable[[str], object]) -> None:
    """The body of most handlers."""
    execute(entry("mine"))
