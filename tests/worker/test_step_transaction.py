"""ctx.transaction(step=...): a step and the handler's own writes, together or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from freehold import Context, LeaseLost, Retry
from tests.worker.durable_handlers import error_of
from tests.worker.local_worker import AT_ONCE, LocalWorker, entry, kinds, put


def books(kind: str, after: Callable[[int], None]) -> Callable[..., Any]:
    async def coroutine(ctx: Context) -> str:
        async with ctx.transaction(step="book") as connection:
            if connection:
                await put(connection, entry("mine"))
        after(ctx.attempt)
        return "done"

    def plain(ctx: Context) -> str:
        with ctx.transaction(step="book") as connection:
            if connection:
                connection.execute(entry("mine"))
        after(ctx.attempt)
        return "done"

    return coroutine if kind == "coroutine" else plain


@kinds
@pytest.mark.requirement("N8")
def test_a_step_and_the_handlers_own_rows_are_committed_once(
    local_worker: LocalWorker, kind: str
) -> None:
    def fails_twice(attempt: int) -> None:
        if attempt < 3:
            raise ConnectionError

    job_id = local_worker.add(books(kind, fails_twice), retry=AT_ONCE)
    local_worker.run()
    job = local_worker.job(job_id)
    assert local_worker.ledger() == ["mine"]
    assert job.report is not None
    assert (job.state, job.attempt, job.report.result) == ("succeeded", 3, "done")


@kinds
@pytest.mark.requirement("N8")
def test_an_exception_in_the_block_leaves_neither_the_rows_nor_the_step(
    local_worker: LocalWorker, kind: str
) -> None:
    async def coroutine(ctx: Context) -> None:
        async with ctx.transaction(step="book") as connection:
            await put(connection, entry("mine"))
            if ctx.attempt == 1:
                raise ConnectionError

    def plain(ctx: Context) -> None:
        with ctx.transaction(step="book") as connection:
            connection.execute(entry("mine"))
            if ctx.attempt == 1:
                raise ConnectionError

    job_id = local_worker.add(coroutine if kind == "coroutine" else plain, retry=AT_ONCE)
    local_worker.run()
    assert local_worker.ledger() == ["mine"]
    assert local_worker.job(job_id).attempt == 2


@pytest.mark.usefixtures("slow_renewer")
@kinds
@pytest.mark.requirement("N8")
def test_a_lost_lease_rolls_back_the_rows_with_the_step(
    local_worker: LocalWorker, kind: str
) -> None:
    past = "'2000-01-01'" if local_worker.is_postgres else "0"
    expires = local_worker.named(f"update {{s}}job set lease_expires_at = {past}")
    seen: list[str] = []

    async def coroutine(ctx: Context) -> None:
        try:
            async with ctx.transaction(step="book") as connection:
                await put(connection, entry("mine"))
                await put(connection, expires)
        except LeaseLost:
            seen.append("LeaseLost")

    def plain(ctx: Context) -> None:
        try:
            with ctx.transaction(step="book") as connection:
                connection.execute(entry("mine"))
                connection.execute(expires)
        except LeaseLost:
            seen.append("LeaseLost")

    job_id = local_worker.add(coroutine if kind == "coroutine" else plain)
    local_worker.run()
    assert seen == ["LeaseLost"]
    assert local_worker.ledger() == []
    assert local_worker.app._client.store.read_steps(job_id) == []


@kinds
def test_a_block_that_would_write_again_is_refused(local_worker: LocalWorker, kind: str) -> None:
    async def coroutine(ctx: Context) -> None:
        async with ctx.transaction(step="book") as connection:
            await put(connection, entry("mine"))
        raise ConnectionError

    def plain(ctx: Context) -> None:
        with ctx.transaction(step="book") as connection:
            connection.execute(entry("mine"))
        raise ConnectionError

    retry = Retry(max_attempts=2, base_seconds=0)
    job_id = local_worker.add(coroutine if kind == "coroutine" else plain, retry=retry)
    local_worker.run()
    assert "begin the block" in error_of(local_worker, job_id)
    assert local_worker.ledger() == ["mine"]


def test_a_timeout_during_the_commit_leaves_a_step_that_is_not_written_again(
    local_worker: LocalWorker,
) -> None:
    seen: list[str] = []

    async def coroutine(ctx: Context) -> bool:
        try:
            async with asyncio.timeout(None) as limit, ctx.transaction(step="book") as connection:
                await put(connection, entry("mine"))
                limit.reschedule(0.0)  # expires when the commit waits for the store
        except TimeoutError:
            seen.append("TimeoutError")
        async with ctx.transaction(step="book") as connection:
            return bool(connection)

    job_id = local_worker.add(coroutine, retry=Retry(max_attempts=1))
    local_worker.run()
    report = local_worker.job(job_id).report
    assert report is not None
    assert (seen, report.result) == (["TimeoutError"], False)
    assert local_worker.ledger() == ["mine"]
