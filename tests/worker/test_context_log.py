"""ctx.progress and ctx.log: kept with the job, bounded, never blocking the handler."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from freehold import Retry, StoreUnavailable
from freehold.model.job_log import LINE_LIMIT, LINES_LIMIT, Progress
from freehold.prometheus import metrics_text, process_metrics
from freehold.worker.execution.context import Context
from freehold.worker.job_log import writer
from tests.worker import context_app
from tests.worker.local_worker import LocalWorker


def _logs(ctx: Context) -> None:
    ctx.progress(1, 4)
    ctx.log("one")
    ctx.progress(3, 4, "nearly")
    ctx.log("two")


async def _alogs(ctx: Context) -> None:
    _logs(ctx)


@pytest.fixture
def process_local_worker(local_worker: LocalWorker) -> Iterator[LocalWorker]:
    """The app with tasks that child processes can import, on this test's store."""
    context_app.app.url = local_worker.app.url
    yield LocalWorker(context_app.app)
    context_app.app.close()


@pytest.mark.requirement("S2.5")
@pytest.mark.parametrize("function", [_logs, _alogs], ids=["function", "coroutine"])
def test_the_log_of_a_handler_is_kept_with_its_finished_job(
    local_worker: LocalWorker, function: Callable[[Context], Any]
) -> None:
    job_id = local_worker.add(function)
    local_worker.run()
    found = local_worker.job(job_id)
    assert found.state == "succeeded"
    assert found.progress == Progress(3.0, 4.0, "nearly", attempt=1)
    notes = local_worker.log(job_id)
    assert [(note.number, note.line) for note in notes] == [(1, "one"), (2, "two")]
    assert found.report is not None
    assert {note.token for note in notes} == {found.report.token}
    assert all(found.report.leased_at <= note.at for note in notes if found.report.leased_at)
    assert all(note.at <= found.report.finished_at for note in notes)


@pytest.mark.requirement("S2.5")
@pytest.mark.either_store
def test_the_log_of_a_child_process_is_kept_with_its_finished_job(
    process_local_worker: LocalWorker,
) -> None:
    job_id = context_app.logs.enqueue().id
    process_local_worker.run()
    found = process_local_worker.job(job_id)
    assert found.state == "succeeded"
    assert found.progress == Progress(3.0, 4.0, "nearly", attempt=1)
    assert process_local_worker.lines(job_id) == ["one", "two"]


def test_progress_is_seen_while_the_handler_runs(local_worker: LocalWorker) -> None:
    def waits_until_seen(ctx: Context) -> None:
        ctx.progress(1, 2)
        deadline, pause = time.monotonic() + 120, threading.Event()
        while local_worker.job(ctx.job.job_id).progress is None:
            assert time.monotonic() < deadline
            pause.wait(0.01)

    job_id = local_worker.add(waits_until_seen)
    local_worker.run()
    assert local_worker.job(job_id).state == "succeeded"


def test_each_attempt_has_its_own_lines_and_the_latest_progress_stays(
    local_worker: LocalWorker,
) -> None:
    async def fails(ctx: Context) -> None:
        ctx.log(f"attempt {ctx.attempt}")
        if ctx.attempt == 1:
            ctx.progress(7)
        raise ValueError

    job_id = local_worker.add(fails, retry=Retry(max_attempts=2, base_seconds=0))
    local_worker.run()
    notes = local_worker.log(job_id)
    assert [(note.number, note.line) for note in notes] == [(1, "attempt 1"), (1, "attempt 2")]
    assert notes[0].token < notes[1].token
    found = local_worker.job(job_id)
    assert found.state == "failed"
    assert found.progress == Progress(7.0, attempt=1)


def test_lines_over_the_limit_are_dropped_and_counted(local_worker: LocalWorker) -> None:
    async def logs_much(ctx: Context) -> None:
        for number in range(LINES_LIMIT + 37):
            ctx.log(f"line {number}")
            if number % 50 == 0:
                await asyncio.sleep(0)

    job_id = local_worker.add(logs_much)
    local_worker.run()
    lines = local_worker.lines(job_id)
    assert lines[:-1] == [f"line {number}" for number in range(LINES_LIMIT)]
    assert "37 more" in lines[-1]


@pytest.mark.either_store
def test_lines_over_the_limit_of_a_child_process_are_dropped_and_counted(
    process_local_worker: LocalWorker,
) -> None:
    job_id = context_app.logs_too_much.enqueue().id
    process_local_worker.run()
    lines = process_local_worker.lines(job_id)
    assert lines[:-1] == [f"line {number}" for number in range(LINES_LIMIT)]
    assert "50 more" in lines[-1]


class _Unshowable:
    def __str__(self) -> str:
        raise RuntimeError


def test_no_logged_value_can_fail_the_handler_or_the_store(local_worker: LocalWorker) -> None:
    def logs_anything(ctx: Any) -> None:
        for value in (
            "x" * 5000,
            "nul \0 and half a pair \ud800",
            "",
            None,
            _Unshowable(),
            b"\xff",
        ):
            ctx.log(value)
        ctx.progress(2, float("nan"), "\0")
        for number in (float("inf"), "many", None, 10**400):
            ctx.progress(number)

    job_id = local_worker.add(logs_anything)
    local_worker.run()
    found, lines = local_worker.job(job_id), local_worker.lines(job_id)
    assert found.state == "succeeded"
    assert found.progress == Progress(2.0, None, "\\0", attempt=1)
    assert len(lines) == 6
    assert max(len(line) for line in lines) == LINE_LIMIT
    assert lines[1] == "nul \\0 and half a pair \\ud800"


@pytest.mark.usefixtures("slow_renewer")
@pytest.mark.requirement("S3.4")
def test_the_log_of_a_stale_owner_is_refused_and_counted(local_worker: LocalWorker) -> None:
    def loses_its_lease(ctx: Context) -> None:
        local_worker.steal(ctx.job.job_id)
        ctx.progress(1)
        ctx.log("I was here")

    job_id = local_worker.add(loses_its_lease, retry=Retry(base_seconds=0))
    worker = local_worker.run()
    assert local_worker.lines(job_id) == []
    assert local_worker.job(job_id).progress is None
    assert worker.telemetry.total("stale_writes", "append_log") == 1
    exported = metrics_text(process_metrics(worker.telemetry))
    assert 'freehold_stale_writes_total{write="append_log"} 1\n' in exported


def test_a_store_that_refuses_the_log_does_not_delay_the_outcome(
    sqlite_local_worker: LocalWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuses(*_: object) -> tuple[int, ...]:
        raise StoreUnavailable("no")

    monkeypatch.setattr("freehold.store.store.AsyncStore.append_log", refuses)
    monkeypatch.setattr(writer, "FLUSH_LIMIT_SECONDS", 0.05)
    job_id = sqlite_local_worker.add(_logs)
    worker = sqlite_local_worker.run()
    assert sqlite_local_worker.job(job_id).state == "succeeded"
    assert worker.telemetry.total("store_errors", "job_log") >= 1


def test_a_handler_without_log_lines_costs_no_write(
    sqlite_local_worker: LocalWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[object] = []
    monkeypatch.setattr("freehold.store.store.AsyncStore.append_log", written.append)

    async def silent(ctx: Context) -> None:
        return

    sqlite_local_worker.add(silent)
    sqlite_local_worker.run()
    assert written == []
