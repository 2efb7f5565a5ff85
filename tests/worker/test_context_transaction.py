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
from tests.worker.workshop import ONCE, Workshop, entry, handler, kinds, put, writes

# -- together --------------------------------------------------------------------------------


@kinds
@pytest.mark.requirement("S0.3", "S0.16")
def test_the_handlers_writes_and_the_jobs_success_are_committed_together(
    workshop: Workshop, kind: str
) -> None:
    job_id = workshop.add(handler(kind, writes, result={"sum": 7}))
    worker = workshop.run()
    job = workshop.job(job_id)
    assert workshop.ledger() == ["mine"]
    assert (job.state, job.lease) == ("succeeded", None)
    assert job.report is not None
    assert (job.report.result, job.report.by) == ({"sum": 7}, worker.owner)
    assert worker.telemetry.total("finished", "success") == 1
    assert worker.telemetry.total("stale_writes") == worker.telemetry.total("lost_leases") == 0


def test_what_it_is_given_is_the_drivers_own_connection(workshop: Workshop) -> None:
    seen: list[Any] = []

    async def coroutine(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            seen.append(type(connection))

    def function(ctx: Context) -> None:
        with ctx.transaction() as connection:
            seen.append(type(connection))

    workshop.add(coroutine)
    workshop.add(function)
    workshop.run()
    postgres = (psycopg.AsyncConnection, psycopg.Connection)
    drivers = postgres if workshop.is_postgres else (sqlite3.Connection, sqlite3.Connection)
    assert [issubclass(*each) for each in zip(seen, drivers, strict=True)] == [True, True]


@kinds
def test_words_said_in_the_transaction_are_committed_with_it(workshop: Workshop, kind: str) -> None:
    def says(ctx: Any, execute: Callable[[str], object]) -> None:
        ctx.log("in the middle")
        ctx.progress(1, 1)

    job_id = workshop.add(handler(kind, says))
    workshop.run()
    assert workshop.lines(job_id) == ["in the middle"]
    assert workshop.job(job_id).progress is not None


@kinds
def test_more_jobs_are_enqueued_in_the_same_transaction(workshop: Workshop, kind: str) -> None:
    @workshop.app.task(name="more")
    async def more() -> None: ...

    async def coroutine(ctx: Context, fails: bool) -> None:
        async with ctx.transaction() as connection:
            await more.using(connection=connection).aenqueue()
            assert not fails

    def function(ctx: Context, fails: bool) -> None:
        with ctx.transaction() as connection:
            more.using(connection=connection).enqueue()
            assert not fails

    task: Any = workshop.app.task(name="first", retry=ONCE)(
        coroutine if kind == "coroutine" else function
    )
    task.enqueue(fails=True)
    task.enqueue(fails=False)
    worker = workshop.run()
    assert worker.telemetry.total("claimed") == 3
    assert worker.telemetry.total("finished", "success") == 2


@kinds
@pytest.mark.requirement("S4.3")
def test_the_next_of_the_lane_follows(workshop: Workshop, kind: str) -> None:
    first = workshop.add(handler(kind, writes), target="account-42")
    second = workshop.app.tasks.get(handler(kind, writes).__name__)
    follower = second.using(target="account-42").enqueue()
    workshop.run()
    assert workshop.ledger() == ["mine", "mine"]
    assert {workshop.job(i).state for i in (first, follower.id)} == {"succeeded"}


@kinds
def test_what_the_handler_does_afterwards_is_logged_and_changes_nothing(
    workshop: Workshop, kind: str, caplog: pytest.LogCaptureFixture
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
        job_id = workshop.add(coroutine if kind == "coroutine" else function)
        workshop.run()
    report = workshop.job(job_id).report
    assert report is not None
    assert (report.state, report.result, report.error) == ("succeeded", "kept", None)
    assert "nothing more is written" in caplog.text


# -- not at all ------------------------------------------------------------------------------


@kinds
def test_an_exception_rolls_back_and_is_the_attempts_own(workshop: Workshop, kind: str) -> None:
    def fails(ctx: Any, execute: Callable[[str], object]) -> None:
        execute(entry("mine"))
        raise ZeroDivisionError

    job_id = workshop.add(handler(kind, fails), retry=ONCE)
    workshop.run()
    job = workshop.job(job_id)
    assert workshop.ledger() == []
    assert job.report is not None
    assert job.report.error is not None
    assert (job.state, job.report.error.type) == ("failed", "ZeroDivisionError")


@kinds
def test_the_databases_own_errors_reach_the_handler_as_they_are(
    workshop: Workshop, kind: str
) -> None:
    workshop.sql("create unique index only_one on ledger (entry)")

    def repeats(ctx: Any, execute: Callable[[str], object]) -> None:
        execute(entry("mine"))
        execute(entry("mine"))

    job_id = workshop.add(handler(kind, repeats), retry=ONCE)
    workshop.run()
    report = workshop.job(job_id).report
    assert report is not None
    assert report.error is not None
    assert report.error.type == ("UniqueViolation" if workshop.is_postgres else "IntegrityError")
    assert workshop.ledger() == []


# -- refused ---------------------------------------------------------------------------------


def _error_of(workshop: Workshop, job_id: int) -> str:
    report = workshop.job(job_id).report
    assert report is not None
    assert report.error is not None
    return f"{report.error.type}: {report.error.message}"


@kinds
def test_a_handler_cannot_end_the_transaction_by_itself(workshop: Workshop, kind: str) -> None:
    def commits(ctx: Any, execute: Callable[[str], object]) -> None:
        execute("commit")

    job_id = workshop.add(handler(kind, commits), retry=ONCE)
    workshop.run()
    assert "ended the transaction itself" in _error_of(workshop, job_id)


def test_a_second_transaction_inside_the_first_is_refused(workshop: Workshop) -> None:
    def nests(ctx: Context) -> None:
        with ctx.transaction(), ctx.transaction():
            raise AssertionError

    job_id = workshop.add(nests, retry=ONCE)
    workshop.run()
    assert "has a transaction open already" in _error_of(workshop, job_id)


def test_a_coroutine_is_told_to_write_async_with(workshop: Workshop) -> None:
    async def blocks(ctx: Context) -> None:
        with ctx.transaction():
            raise AssertionError

    job_id = workshop.add(blocks, retry=ONCE)
    workshop.run()
    assert "async with" in _error_of(workshop, job_id)


def test_a_result_that_cannot_be_stored_is_refused_before_anything_is_written(
    workshop: Workshop,
) -> None:
    job_id = workshop.add(handler("function", writes, result=float("nan")), retry=ONCE)
    workshop.run()
    assert "BadPayload" in _error_of(workshop, job_id)
    assert workshop.ledger() == []


@kinds
def test_on_sqlite_a_write_that_would_wait_for_its_own_transaction_is_refused(
    sqlite_workshop: Workshop, kind: str
) -> None:
    @sqlite_workshop.app.task(name="more")
    def more() -> None: ...

    async def coroutine(ctx: Context) -> None:
        async with ctx.transaction():
            await more.aenqueue()

    def function(ctx: Context) -> None:
        with ctx.transaction():
            more.enqueue()

    job_id = sqlite_workshop.add(coroutine if kind == "coroutine" else function, retry=ONCE)
    worker = sqlite_workshop.run()
    assert "pass connection=conn" in _error_of(sqlite_workshop, job_id)
    assert worker.telemetry.total("claimed") == 1


def test_a_process_of_its_own_has_no_transaction(workshop: Workshop) -> None:
    app = context_app.app
    app.url = workshop.app.url
    try:
        job_id = context_app.wants_a_transaction.enqueue().id
        Workshop(app).run()
        assert 'isolation="process"' in _error_of(workshop, job_id)
    finally:
        app.close()
