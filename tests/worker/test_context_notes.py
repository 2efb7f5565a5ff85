"""ctx.progress and ctx.log: kept with the job, bounded, never in the handler's way."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from freehold import Retry, StoreUnavailable
from freehold.model.job_log import LINE_LIMIT, LINES_LIMIT, Progress
from freehold.worker.execution.context import Context
from freehold.worker.job_log import writer
from tests.worker import context_app
from tests.worker.workshop import Workshop


def _says(ctx: Context) -> None:
    ctx.progress(1, 4)
    ctx.log("one")
    ctx.progress(3, 4, "nearly")
    ctx.log("two")


async def _asays(ctx: Context) -> None:
    _says(ctx)


@pytest.fixture
def process_workshop(workshop: Workshop) -> Iterator[Workshop]:
    """The app whose tasks child processes can find, on this test's store."""
    context_app.app.url = workshop.app.url
    yield Workshop(context_app.app)
    context_app.app.close()


@pytest.mark.requirement("S2.5")
@pytest.mark.parametrize("function", [_says, _asays], ids=["function", "coroutine"])
def test_what_a_handler_says_is_kept_with_its_finished_job(
    workshop: Workshop, function: Callable[[Context], Any]
) -> None:
    job_id = workshop.add(function)
    workshop.run()
    found = workshop.job(job_id)
    assert found.state == "succeeded"
    assert found.progress == Progress(3.0, 4.0, "nearly", attempt=1)
    notes = workshop.notes(job_id)
    assert [(note.number, note.line) for note in notes] == [(1, "one"), (2, "two")]
    assert found.report is not None
    assert {note.token for note in notes} == {found.report.token}
    assert all(found.report.leased_at <= note.at for note in notes if found.report.leased_at)
    assert all(note.at <= found.report.finished_at for note in notes)


@pytest.mark.requirement("S2.5")
def test_what_a_child_process_says_is_kept_with_its_finished_job(
    process_workshop: Workshop,
) -> None:
    job_id = context_app.says.enqueue().id
    process_workshop.run()
    found = process_workshop.job(job_id)
    assert found.state == "succeeded"
    assert found.progress == Progress(3.0, 4.0, "nearly", attempt=1)
    assert process_workshop.lines(job_id) == ["one", "two"]


def test_progress_is_seen_while_the_handler_runs(workshop: Workshop) -> None:
    def waits_until_seen(ctx: Context) -> None:
        ctx.progress(1, 2)
        deadline, pause = time.monotonic() + 120, threading.Event()
        while workshop.job(ctx.job.job_id).progress is None:
            assert time.monotonic() < deadline
            pause.wait(0.01)

    job_id = workshop.add(waits_until_seen)
    workshop.run()
    assert workshop.job(job_id).state == "succeeded"


def test_each_attempt_has_its_own_lines_and_the_latest_progress_stays(workshop: Workshop) -> None:
    async def fails(ctx: Context) -> None:
        ctx.log(f"attempt {ctx.attempt}")
        if ctx.attempt == 1:
            ctx.progress(7)
        raise ValueError

    job_id = workshop.add(fails, retry=Retry(max_attempts=2, base_seconds=0))
    workshop.run()
    notes = workshop.notes(job_id)
    assert [(note.number, note.line) for note in notes] == [(1, "attempt 1"), (1, "attempt 2")]
    assert notes[0].token < notes[1].token
    found = workshop.job(job_id)
    assert found.state == "failed"
    assert found.progress == Progress(7.0, attempt=1)


def test_too_many_lines_are_counted_and_said_so(workshop: Workshop) -> None:
    async def talks(ctx: Context) -> None:
        for number in range(LINES_LIMIT + 37):
            ctx.log(f"line {number}")
            if number % 50 == 0:
                await asyncio.sleep(0)

    job_id = workshop.add(talks)
    workshop.run()
    lines = workshop.lines(job_id)
    assert lines[:-1] == [f"line {number}" for number in range(LINES_LIMIT)]
    assert "37 more" in lines[-1]


def test_too_many_lines_of_a_child_process_are_counted_too(process_workshop: Workshop) -> None:
    job_id = context_app.talks_too_much.enqueue().id
    process_workshop.run()
    lines = process_workshop.lines(job_id)
    assert lines[:-1] == [f"line {number}" for number in range(LINES_LIMIT)]
    assert "50 more" in lines[-1]


class _Unshowable:
    def __str__(self) -> str:
        raise RuntimeError


def test_nothing_that_is_said_can_fail_the_handler_or_the_store(workshop: Workshop) -> None:
    def babbles(ctx: Any) -> None:
        for words in (
            "x" * 5000,
            "nul \0 and half a pair \ud800",
            "",
            None,
            _Unshowable(),
            b"\xff",
        ):
            ctx.log(words)
        ctx.progress(2, float("nan"), "\0")
        for number in (float("inf"), "many", None, 10**400):
            ctx.progress(number)

    job_id = workshop.add(babbles)
    workshop.run()
    found, lines = workshop.job(job_id), workshop.lines(job_id)
    assert found.state == "succeeded"
    assert found.progress == Progress(2.0, None, "\\0", attempt=1)
    assert len(lines) == 6
    assert max(len(line) for line in lines) == LINE_LIMIT
    assert lines[1] == "nul \\0 and half a pair \\ud800"


@pytest.mark.usefixtures("unnoticed")
@pytest.mark.requirement("S3.4")
def test_a_stale_owners_last_words_are_refused_and_counted(workshop: Workshop) -> None:
    def robbed(ctx: Context) -> None:
        workshop.steal(ctx.job.job_id)
        ctx.progress(1)
        ctx.log("I was here")

    job_id = workshop.add(robbed, retry=Retry(base_seconds=0))
    worker = workshop.run()
    assert workshop.lines(job_id) == []
    assert workshop.job(job_id).progress is None
    assert worker.telemetry.total("stale_writes", "note") == 1


def test_a_store_that_takes_no_words_does_not_hold_up_the_jobs_end(
    sqlite_workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuses(*_: object) -> tuple[int, ...]:
        raise StoreUnavailable("no")

    monkeypatch.setattr("freehold.store.store.AsyncStore.note", refuses)
    monkeypatch.setattr(writer, "LAST_WORDS_SECONDS", 0.05)
    job_id = sqlite_workshop.add(_says)
    worker = sqlite_workshop.run()
    assert sqlite_workshop.job(job_id).state == "succeeded"
    assert worker.telemetry.total("store_errors", "scribe") >= 1


def test_a_handler_that_says_nothing_costs_no_write(
    sqlite_workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr("freehold.store.store.AsyncStore.note", asked.append)

    async def silent(ctx: Context) -> None:
        return

    sqlite_workshop.add(silent)
    sqlite_workshop.run()
    assert asked == []
