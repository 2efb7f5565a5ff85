"""ctx.transaction: the handler's own writes and its job's end, together or not at all."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from freehold.worker.execution.context import Context
from tests.worker import context_app
from tests.worker.local_worker import ONCE, LocalWorker, entry, handler, kinds, put, writes

# -- together --------------------------------------------------------------------------------


@kinds
@pytest.mark.requirement("S0.3", "S0.16")
def test_the_handlers_writes_and_the_jobs_success_are_committed_together(
    local_worker: LocalWorker, kind: str
) -> None:
    job_id = local_worker.add(handler(kind, writes, result={"sum": 7}))
    worker = local_worker.run()
    job = local_worker.job(job_id)
    assert local_worker.ledger() == ["mine"]
    assert (job.state, job.lease) == ("succeeded", None)
    assert job.report is not None
    assert (job.report.result, job.report.finished_by) == ({"sum": 7}, worker.owner)
    assert worker.telemetry.total("finished", "success") == 1
    assert worker.telemetry.total("stale_writes") == worker.telemetry.total("lost_leases") == 0


def test_the_handler_gets_the_drivers_own_connection(local_worker: LocalWorker) -> None:
    seen: list[Any] = []

    async def coroutine(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            seen.append(type(connection))

    def function(ctx: Context) -> None:
        with ctx.transaction() as connection:
            seen.append(type(connection))

    local_worker.add(coroutine)
    local_worker.add(function)
    local_worker.run()
    postgres = (psycopg.AsyncConnection, psycopg.Connection)
    drivers = postgres if local_worker.is_postgres else (sqlite3.Connection, sqlite3.Connection)
    assert [issubclass(*each) for each in zip(seen, drivers, strict=True)] == [True, True]


@kinds
def test_log_lines_of_the_transaction_are_committed_with_it(
    local_worker: LocalWorker, kind: str
) -> None:
    def logs(ctx: Any, execute: Callable[[str], object]) -> None:
        ctx.log("in the middle")
        ctx.progress(1, 1)

    job_id = local_worker.add(handler(kind, logs))
    local_worker.run()
    assert local_worker.lines(job_id) == ["in the middle"]
    assert local_worker.job(job_id).progress is not None


@kinds
def test_more_jobs_are_enqueued_in_the_same_transaction(
    local_worker: LocalWorker, kind: str
) -> None:
    @local_worker.app.task(name="more")
    async def more() -> None: ...

    async def coroutine(ctx: Context, fails: bool) -> None:
        async with ctx.transaction() as connection:
            await more.using(connection=connection).aenqueue()
            assert not fails

    def function(ctx: Context, fails: bool) -> None:
        with ctx.transaction() as connection:
            more.using(connection=connection).enqueue()
            assert not fails

    task: Any = local_worker.app.task(name="first", retry=ONCE)(
        coroutine if kind == "coroutine" else function
    )
    task.enqueue(fails=True)
    task.enqueue(fails=False)
    worker = local_worker.run()
    assert worker.telemetry.total("claimed") == 3
    assert worker.telemetry.total("finished", "success") == 2


@kinds
@pytest.mark.requirement("S4.3")
def test_the_next_job_of_the_lane_follows(local_worker: LocalWorker, kind: str) -> None:
    first = local_worker.add(handler(kind, writes), target="account-42")
    second = local_worker.app.tasks.get(handler(kind, writes).__name__)
    follower = second.using(target="account-42").enqueue()
    local_worker.run()
    assert local_worker.ledger() == ["mine", "mine"]
    assert {local_worker.job(i).state for i in (first, follower.id)} == {"succeeded"}


@kinds
def test_a_handlers_end_after_its_transaction_is_logged_and_ignored(
    local_worker: LocalWorker, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def coroutine(ctx: Context) -> str:
        async with ctx.transaction(result="kept") as connection:
            await put(connection, entry("mine"))
        raise ValueError("too late")

    def function(ctx: Context) -> str:
        with ctx.transaction(result="kept") as connection:
            connection.execute(entry("mine"))
        return "ignored"

    with caplog.at_level(logging.WARNING, "freehold"):
        job_id = local_worker.add(coroutine if kind == "coroutine" else function)
        local_worker.run()
    report = local_worker.job(job_id).report
    assert report is not None
    assert (report.state, report.result, report.error) == ("succeeded", "kept", None)
    assert "already finished by its transaction" in caplog.text


# -- not at all ------------------------------------------------------------------------------


@kinds
def test_an_exception_rolls_back_and_fails_the_attempt(
    local_worker: LocalWorker, kind: str
) -> None:
    def fails(ctx: Any, execute: Callable[[str], object]) -> None:
        execute(entry("mine"))
        raise ZeroDivisionError

    job_id = local_worker.add(handler(kind, fails), retry=ONCE)
    local_worker.run()
    job = local_worker.job(job_id)
    assert local_worker.ledger() == []
    assert job.report is not None
    assert job.report.error is not None
    assert (job.state, job.report.error.type) == ("failed", "builtins.ZeroDivisionError")


@kinds
def test_the_databases_own_errors_reach_the_handler_as_they_are(
    local_worker: LocalWorker, kind: str
) -> None:
    local_worker.sql("create unique index only_one on ledger (entry)")

    def repeats(ctx: Any, execute: Callable[[str], object]) -> None:
        execute(entry("mine"))
        execute(entry("mine"))

    job_id = local_worker.add(handler(kind, repeats), retry=ONCE)
    local_worker.run()
    report = local_worker.job(job_id).report
    assert report is not None
    assert report.error is not None
    assert report.error.type == (
        "psycopg.errors.UniqueViolation" if local_worker.is_postgres else "sqlite3.IntegrityError"
    )
    assert local_worker.ledger() == []


# -- refused ---------------------------------------------------------------------------------


def _error_of(local_worker: LocalWorker, job_id: int) -> str:
    report = local_worker.job(job_id).report
    assert report is not None
    assert report.error is not None
    return f"{report.error.type}: {report.error.message}"


@kinds
def test_a_handler_cannot_end_the_transaction_by_itself(
    local_worker: LocalWorker, kind: str
) -> None:
    def commits(ctx: Any, execute: Callable[[str], object]) -> None:
        execute("commit")

    job_id = local_worker.add(handler(kind, commits), retry=ONCE)
    local_worker.run()
    assert "ended the transaction itself" in _error_of(local_worker, job_id)


def test_a_second_transaction_inside_the_first_is_refused(local_worker: LocalWorker) -> None:
    def nests(ctx: Context) -> None:
        with ctx.transaction(), ctx.transaction():
            raise AssertionError

    job_id = local_worker.add(nests, retry=ONCE)
    local_worker.run()
    assert "has a transaction open already" in _error_of(local_worker, job_id)


def test_a_plain_with_in_a_coroutine_is_refused(local_worker: LocalWorker) -> None:
    async def blocks(ctx: Context) -> None:
        with ctx.transaction():
            raise AssertionError

    job_id = local_worker.add(blocks, retry=ONCE)
    local_worker.run()
    assert "async with" in _error_of(local_worker, job_id)


def test_a_result_that_cannot_be_stored_is_refused_before_anything_is_written(
    local_worker: LocalWorker,
) -> None:
    job_id = local_worker.add(handler("function", writes, result=float("nan")), retry=ONCE)
    local_worker.run()
    assert "BadPayload" in _error_of(local_worker, job_id)
    assert local_worker.ledger() == []


@kinds
def test_on_sqlite_a_write_that_would_wait_for_its_own_transaction_is_refused(
    sqlite_local_worker: LocalWorker, kind: str
) -> None:
    @sqlite_local_worker.app.task(name="more")
    def more() -> None: ...

    async def coroutine(ctx: Context) -> None:
        async with ctx.transaction():
            await more.aenqueue()

    def function(ctx: Context) -> None:
        with ctx.transaction():
            more.enqueue()

    job_id = sqlite_local_worker.add(coroutine if kind == "coroutine" else function, retry=ONCE)
    worker = sqlite_local_worker.run()
    assert "pass connection=conn" in _error_of(sqlite_local_worker, job_id)
    assert worker.telemetry.total("claimed") == 1


def test_a_child_process_has_no_transaction(local_worker: LocalWorker) -> None:
    app = context_app.app
    app.url = local_worker.app.url
    try:
        job_id = context_app.wants_a_transaction.enqueue().id
        LocalWorker(app).run()
        assert 'isolation="process"' in _error_of(local_worker, job_id)
    finally:
        app.close()
