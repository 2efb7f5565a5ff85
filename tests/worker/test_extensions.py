"""Extensions see every enqueue, attempt and end, in the order of their registration."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import msgspec
import pytest

from freehold import (
    BadInput,
    BadPayload,
    BadSettings,
    Context,
    EndedAttempt,
    Extension,
    Freehold,
    NewJob,
    OutcomeKind,
    OutcomeUnknown,
    Refused,
    Retry,
    State,
    WorkerSettings,
)
from freehold.client import Client
from freehold.clock import system_micros
from freehold.store.open import open_memory
from freehold.store.sqlite.handler_transaction import SqliteTransaction
from freehold.store.types import ClaimRequest, QueueDemand
from freehold.worker import ended_calls
from tests.worker import extended_app
from tests.worker.extended_app import TASKS, request_id
from tests.worker.local_worker import LocalWorker

pytestmark = pytest.mark.requirement("N6")
ONCE = Retry(max_attempts=1)


@pytest.fixture
def extended() -> Iterator[Freehold]:
    """The app of the module, on an empty store."""
    app = extended_app.app
    before = app._swap_client(Client(open_memory(system_micros), tasks=app.tasks))
    yield app
    app.close()
    app._swap_client(before)


@pytest.mark.parametrize("kind", TASKS)
def test_a_handler_of_each_kind_runs_inside_its_extensions_with_carried_variables(
    extended: Freehold, kind: str
) -> None:
    token = request_id.set("r7")
    try:
        job = TASKS[kind].enqueue()
    finally:
        request_id.reset(token)
    extended.run_worker(until_idle=True)
    assert job.result(30) == ["r7", "outer 1"]
    assert job.read().meta == {"request_id": "r7"}


@pytest.mark.parametrize("kind", TASKS)
def test_an_exception_of_an_extension_is_the_error_of_the_attempt(
    extended: Freehold, kind: str
) -> None:
    refused = TASKS[kind].using(meta={"refused": True}).enqueue()
    replaced = TASKS[kind].enqueue(0)
    extended.run_worker(until_idle=True)
    for job, name in ((refused, "builtins.PermissionError"), (replaced, "builtins.KeyError")):
        report = job.read().report
        assert report is not None
        assert report.error is not None
        assert report.error.type == name


def test_metadata_that_a_call_gives_is_not_replaced_by_a_carried_variable(
    extended: Freehold,
) -> None:
    token = request_id.set("r7")
    try:
        job = TASKS["function"].using(meta={"request_id": "mine", "other": 1}).enqueue()
        plain = TASKS["function"].prepare()
    finally:
        request_id.reset(token)
    assert job.read().meta == {"request_id": "mine", "other": 1}
    (later,) = extended.enqueue_many([plain])
    assert later.read().meta == {}


class Recorder(Extension):
    def __init__(self, events: list[str], name: str = "") -> None:
        self.events = events
        self.name = name

    def enqueueing(self, jobs: list[NewJob]) -> list[NewJob]:
        self.events.append(f"{self.name}enqueueing {len(jobs)}")
        return jobs

    async def enqueued(self, jobs: list[NewJob], handles: Any) -> None:
        self.events.append(f"{self.name}enqueued {[each.id for each in handles]}")

    def ended(self, attempt: EndedAttempt) -> None:
        self.events.append(
            f"{self.name}ended {attempt.job.number} {attempt.outcome.kind} {attempt.state}"
        )

    @asynccontextmanager
    async def worker(self, settings: WorkerSettings) -> AsyncIterator[None]:
        self.events.append(f"{self.name}worker starts")
        yield
        self.events.append(f"{self.name}worker ends")


async def _greet() -> str:
    return "hello"


def test_all_hooks_run_in_the_order_of_registration(local_worker: LocalWorker) -> None:
    app, events = local_worker.app, list[str]()
    app.extend(Recorder(events, "1 "))
    app.extend(Recorder(events, "2 "))
    job = app.task(name="greet", retry=ONCE)(_greet).enqueue()
    app.run_worker(until_idle=True)
    assert events == [
        "1 enqueueing 1",
        "2 enqueueing 1",
        f"1 enqueued [{job.id}]",
        f"2 enqueued [{job.id}]",
        "1 worker starts",
        "2 worker starts",
        "1 ended 1 success succeeded",
        "2 ended 1 success succeeded",
        "2 worker ends",
        "1 worker ends",
    ]


def test_failures_retries_and_transactions_end_attempts_too(local_worker: LocalWorker) -> None:
    app, events = local_worker.app, list[str]()

    class Ends(Extension):
        async def ended(self, attempt: EndedAttempt) -> None:
            kind, wait = attempt.outcome.kind, attempt.retry_seconds
            events.append(f"{attempt.job.task} {attempt.job.number} {kind} {attempt.state} {wait}")

    app.extend(Ends())

    @app.task(name="fails", retry=Retry(max_attempts=2, base_seconds=0))
    async def fails() -> None:
        raise ValueError

    @app.task(name="commits")
    async def commits(ctx: Context) -> None:
        async with ctx.transaction():
            pass

    fails.enqueue()
    app.run_worker(until_idle=True)
    commits.enqueue()
    app.run_worker(until_idle=True)
    assert events == [
        "fails 1 error queued 0.0",
        "fails 2 error failed None",
        "commits 1 success succeeded None",
    ]


def test_a_commit_with_an_unknown_outcome_is_no_success_for_extensions(
    sqlite_local_worker: LocalWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, events = sqlite_local_worker.app, list[str]()
    app.extend(Recorder(events))

    @app.task(name="commits", retry=ONCE)
    def commits(ctx: Context) -> None:
        with ctx.transaction():
            pass

    def broken(transaction: SqliteTransaction) -> None:
        transaction.rollback()
        raise OutcomeUnknown("the response to the commit was lost")

    monkeypatch.setattr(SqliteTransaction, "commit", broken)
    job = commits.enqueue()
    app.run_worker(until_idle=True)
    assert job.read().state is not State.SUCCEEDED
    assert [event for event in events if event.startswith("ended")] == []


def test_the_attempt_of_a_lost_worker_is_ended_by_the_sweeper(local_worker: LocalWorker) -> None:
    app, ends = local_worker.app, list[EndedAttempt]()

    class Ends(Extension):
        def ended(self, attempt: EndedAttempt) -> None:
            ends.append(attempt)

    app.extend(Ends())
    app.task(name="greet", retry=Retry(base_seconds=0))(_greet).enqueue()
    demands = (QueueDemand("default", 1),)
    app._client.store.claim(ClaimRequest(owner="lost", lease_seconds=60, demands=demands))
    app._client.store.expire_leases("lost")
    app.run_worker(until_idle=True)
    lost, again = ends
    assert (lost.job.owner, lost.outcome.kind, lost.state) == (
        "lost",
        OutcomeKind.LOST_LEASE,
        State.QUEUED,
    )
    assert (again.outcome.kind, again.state) == (OutcomeKind.SUCCESS, State.SUCCEEDED)


def test_an_extension_that_fails_after_the_fact_changes_nothing(
    local_worker: LocalWorker, caplog: pytest.LogCaptureFixture
) -> None:
    class Fails(Extension):
        def enqueued(self, jobs: list[NewJob], handles: Any) -> None:
            raise ValueError("too late")

        def ended(self, attempt: EndedAttempt) -> None:
            raise ValueError("too late")

    local_worker.app.extend(Fails())
    job = local_worker.app.task(name="greet", retry=ONCE)(_greet).enqueue()
    with caplog.at_level(logging.ERROR, "freehold"):
        local_worker.app.run_worker(until_idle=True)
    assert job.result(30) == "hello"
    assert "Fails.ended failed" in caplog.text


def test_a_hook_that_hangs_is_not_logged_as_an_outcome_that_was_lost(
    sqlite_local_worker: LocalWorker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Hangs(Extension):
        async def ended(self, attempt: EndedAttempt) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(ended_calls, "FLUSH_SECONDS", 0.01)
    app = sqlite_local_worker.app
    app.extend(Hangs())
    job = app.task(name="greet", retry=ONCE)(_greet).enqueue()
    app.run_worker(until_idle=True, lease_timeout_seconds=0.5)
    assert job.read().state is State.SUCCEEDED
    assert "1 end of attempts not passed on; the outcomes are stored" in caplog.text
    assert "could not be written" not in caplog.text


_HANGS_IN_A_PROGRAM = """
import asyncio, threading
from freehold import Extension, Freehold
from freehold.worker import ended_calls

ended_calls.FLUSH_SECONDS = 0.01

class Hangs(Extension):
    def ended(self, attempt):
        threading.Event().wait()

app = Freehold("jobs.db")
app.extend(Hangs())

@app.task(name="greet")
async def greet():
    return "hello"

async def main():
    job = await greet.aenqueue()
    await app.arun_worker(until_idle=True)
    print(await job.aresult(30))

asyncio.run(main())
"""


def test_a_plain_hook_that_hangs_does_not_keep_an_event_loop_or_its_process(tmp_path: Path) -> None:
    """A web server that runs a worker ends, too: its event loop waits for asyncio's own threads."""
    command = [sys.executable, "-c", _HANGS_IN_A_PROGRAM]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr


@pytest.mark.parametrize("is_awaited", [False, True])
def test_an_extension_can_refuse_and_change_jobs_before_they_are_stored(
    local_worker: LocalWorker, is_awaited: bool
) -> None:
    class Changes(Extension):
        def enqueueing(self, jobs: list[NewJob]) -> list[NewJob]:
            return [msgspec.structs.replace(job, priority=7) for job in jobs]

    class Waits(Extension):
        async def enqueueing(self, jobs: list[NewJob]) -> list[NewJob]:
            if any(job.queue == "closed" for job in jobs):
                raise Refused("this queue is closed")
            return jobs

    app = local_worker.app
    app.extend(Changes())
    if is_awaited:
        app.extend(Waits())
    task = app.task(name="greet", retry=ONCE)(_greet)
    assert task.enqueue().read().priority == 7
    if is_awaited:
        with pytest.raises(Refused, match="closed"):
            task.using(queue="closed").enqueue()
        assert app.operator.counts().ready == 1


class Suspends(Extension):
    """Its hooks are plain functions, and return coroutines that wait."""

    def enqueued(self, jobs: list[NewJob], handles: Any) -> Any:
        return self._wait()

    async def _wait(self) -> None:
        while True:
            with contextlib.suppress(Exception):
                await asyncio.sleep(0)


class SuspendsBefore(Suspends):
    def enqueueing(self, jobs: list[NewJob]) -> Any:
        return self._wait()


def test_a_plain_hook_that_waits_does_not_fail_an_enqueue_that_is_stored(
    local_worker: LocalWorker, caplog: pytest.LogCaptureFixture
) -> None:
    app = local_worker.app
    app.extend(Suspends())
    app.extend(Suspends())
    job = app.task(name="greet", retry=ONCE)(_greet).enqueue()
    assert job.read().state is State.QUEUED
    assert caplog.text.count("Suspends.enqueued failed; the jobs are stored") == 2


def test_a_plain_hook_that_waits_before_an_enqueue_refuses_it(local_worker: LocalWorker) -> None:
    app = local_worker.app
    app.extend(SuspendsBefore())
    with pytest.raises(BadInput, match=r"SuspendsBefore\.enqueueing waits.*async def"):
        app.task(name="greet", retry=ONCE)(_greet).enqueue()
    assert app.operator.counts().ready == 0


def test_bad_extensions_are_refused(local_worker: LocalWorker) -> None:
    class Forgets(Extension):
        def enqueueing(self, jobs: list[NewJob]) -> Any:
            return None

    app = local_worker.app
    with pytest.raises(BadSettings, match="not an extension"):
        app.extend(Forgets)  # type: ignore[arg-type]
    app.extend(Forgets())
    with pytest.raises(BadInput, match=r"Forgets\.enqueueing must return a list of 1 jobs"):
        app.task(name="greet", retry=ONCE)(_greet).enqueue()


def test_a_carried_value_that_metadata_cannot_have_refuses_the_enqueue(
    local_worker: LocalWorker,
) -> None:
    variable: ContextVar[Any] = ContextVar("user")
    local_worker.app.carry(variable, name="user_id")
    task = local_worker.app.task(name="greet", retry=ONCE)(_greet)
    variable.set(object())
    with pytest.raises(BadPayload, match="user_id"):
        task.enqueue()
