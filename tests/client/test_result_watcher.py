"""One watcher for all callers of a process: few statements, whatever the number of callers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from freehold import Freehold, StoreUnavailable, result_watcher
from freehold.model.job import Attempt
from freehold.result_watcher import ReadPace, ResultWatcher
from freehold.store.database import Database
from freehold.store.statements import AsyncSession, Rows, StatementGroup
from freehold.store.types import AttemptEnd, ClaimRequest, QueueDemand
from freehold.worker.execution import outcomes
from tests.client.helpers import greet
from tests.concurrency import wait_until

pytestmark = pytest.mark.requirement("N5")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _read_times(pace: ReadPace, clock: Clock, count: int, jobs: int = 1) -> list[float]:
    """When so many reads take place, since now."""
    began, times = clock.now, []
    for _ in range(count):
        clock.now += max(pace.seconds_left(jobs), 0.0)
        pace.was_read()
        times.append(round(clock.now - began, 3))
    return times


def test_reads_become_rare_while_nothing_happens() -> None:
    pace = ReadPace(clock := Clock())
    pace.job_added()
    times = _read_times(pace, clock, 9)
    assert times == [0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.28, 3.28]


def test_a_notified_end_is_read_at_once() -> None:
    pace = ReadPace(clock := Clock())
    pace.job_added()
    _read_times(pace, clock, 9)
    clock.now += 0.5
    pace.job_ended()
    assert pace.seconds_left(1) == 0


def test_a_storm_of_ends_and_of_new_callers_makes_17_reads_a_second() -> None:
    pace = ReadPace(clock := Clock())
    times: list[float] = []
    while clock.now < 110.0:
        pace.job_added()
        pace.job_ended()
        pace.store_changed()
        if pace.seconds_left(1000) <= 0:
            pace.was_read()
            times.append(clock.now)
        clock.now += 0.001
    assert 160 <= len(times) <= 170


def test_one_caller_alone_gets_hundreds_of_results_a_second() -> None:
    pace = ReadPace(Clock())
    pace.was_read()
    pace.job_ended()
    assert pace.seconds_left(1) < 0.002


class Recorded:
    """A session that counts the groups it executes, and fails as often as it is told to."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session
        self.times: list[float] = []
        self.jobs: list[int] = []
        self.done = 0
        self.failures = 0

    async def execute(self, group: StatementGroup) -> list[Rows]:
        self.times.append(time.monotonic())
        self.jobs.append(len(group.statements[0].rows or ()))
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("the store is away")
        rows = await self._session.execute(group)
        self.done += 1
        return rows


@pytest.fixture
def reads(app: Freehold, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    database: Database = app._client.database
    recorded = Recorded(database.async_session())
    monkeypatch.setattr(database, "async_session", lambda: recorded)
    return recorded


@pytest.fixture
def only_notifications(monkeypatch: pytest.MonkeyPatch) -> None:
    """No read but those that a notification asks for."""
    monkeypatch.setattr(result_watcher, "_FIRST_SECONDS", 600.0)


def _claimed(app: Freehold, count: int) -> list[Attempt]:
    request = ClaimRequest(owner="w1", lease_seconds=60, demands=(QueueDemand("default", count),))
    return app._client.store.claim(request)


def _finish(app: Freehold, attempts: list[Attempt]) -> None:
    ends = [AttemptEnd(each, outcomes.of_result(each.job_id, 0.1, each)) for each in attempts]
    assert not app._client.store.finish("w1", ends).lost


async def _results(app: Freehold, ids: list[int]) -> list[Any]:
    return await asyncio.gather(*(app._client.wait_async(each, 100) for each in ids))


def test_a_thousand_callers_cost_fewer_than_twenty_statements_a_second(
    app: Freehold, reads: Recorded
) -> None:
    app.task(greet)
    task = app.tasks.get(greet.__module__ + ".greet")
    ids = [each.id for each in app.enqueue_many(task.prepare("ann") for _ in range(1000))]

    async def callers() -> list[Any]:
        waiting = asyncio.create_task(_results(app, ids))
        attempts = await asyncio.to_thread(_claimed, app, 1000)
        for start in range(0, 1000, 50):  # ends keep coming
            await asyncio.to_thread(_finish, app, attempts[start : start + 50])
        return await waiting

    ends = asyncio.run(callers())
    assert [end.result for end in ends] == [str(job_id) for job_id in ids]
    for before, after, jobs in zip(reads.times, reads.times[1:], reads.jobs[1:], strict=False):
        assert after - before > 1 / 20 or jobs < 60  # at the end few callers are left
    assert app._client.results.waited_for() == []


@pytest.mark.parametrize("target", [None, "printer"])
def test_a_called_job_is_noticed_by_its_notification_alone(
    postgres_app: Freehold, only_notifications: None, target: str | None
) -> None:
    """The first read is that of the listener's start; the next needs a notification."""
    app, watcher = postgres_app, postgres_app._client.results
    recorded = Recorded(app._client.database.async_session())
    app._client.database.async_session = lambda: recorded  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as pool:
        caller = pool.submit(app.task(greet).using(wait=100, target=target).call, "ann")
        wait_until(lambda: recorded.done == 1, "the watcher listens")
        assert watcher.waited_for()
        _finish_null(app, _claimed(app, 1))
        assert caller.result(100) is None
    assert len(recorded.times) == 2


def _finish_null(app: Freehold, attempts: list[Attempt]) -> None:
    ends = [AttemptEnd(each, outcomes.of_result(None, 0.1, each)) for each in attempts]
    assert not app._client.store.finish("w1", ends).lost


def test_plain_jobs_notify_no_caller(postgres_app: Freehold) -> None:
    """Their ends would cost every worker a statement."""
    task = postgres_app.task(greet)
    task.enqueue("ann")
    (plain,) = _claimed(postgres_app, 1)
    assert plain.policy_json is None


def test_an_outage_of_the_store_ends_no_wait(app: Freehold, reads: Recorded) -> None:
    handle = app.task(greet).enqueue("ann")
    reads.failures = 3
    with ThreadPoolExecutor(1) as pool:
        caller = pool.submit(handle.result, 100)
        wait_until(lambda: not reads.failures, "the outage is over")
        _finish_null(app, _claimed(app, 1))
        assert caller.result(100) is None


def test_a_broken_watcher_fails_its_callers_and_the_next_one_works(
    app: Freehold, reads: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = app.task(greet).enqueue("ann")
    _finish_null(app, _claimed(app, 1))
    with monkeypatch.context() as broken:
        broken.setattr(Recorded, "execute", None)
        with pytest.raises(TypeError):
            handle.result(100)
    assert handle.result(100) is None


def test_an_unused_thread_ends(app: Freehold, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_watcher, "_UNUSED_SECONDS", 0.01)
    handle = app.task(greet).enqueue("ann")
    _finish_null(app, _claimed(app, 1))
    watcher: ResultWatcher = app._client.results
    for _ in range(2):
        assert handle.result(100) is None
        wait_until(lambda: watcher._thread is None, "the thread ends")


_FORKS = """
import os, sys, threading
from freehold import Freehold
from tests.client.test_result_watcher import _claimed, _finish_null
from tests.concurrency import wait_until
from tests.client.helpers import greet

app = Freehold(sys.argv[1])
task = app.task(greet)
live, ended = task.enqueue("ann"), None
(attempt,) = _claimed(app, 1)
caller = threading.Thread(target=live.result, args=(100,))
caller.start()
wait_until(lambda: app._client.results.waited_for(), "the caller waits")
other = task.enqueue("bob")
if (child := os.fork()) == 0:
    _finish_null(app, _claimed(app, 1))
    other.result(100)
    app.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
_finish_null(app, [attempt])
caller.join(100)
assert not caller.is_alive()
assert other.result(100) is None
app.close()
"""


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_forked_child_waits_with_a_watcher_of_its_own(
    request: pytest.FixtureRequest, store: str
) -> None:
    app: Freehold = request.getfixturevalue(f"{store}_app")
    app.migrate()
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _FORKS, app.url],
        cwd=Path(__file__).parents[2],
        timeout=100,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_thread_that_cannot_be_started_fails_one_wait_and_not_all_later_ones(
    app: Freehold, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    handle = app.task(greet).enqueue("ann")
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start"):
            handle.result(timeout=0.1)
    assert app._client.results.waited_for() == []
    (attempt,) = _claimed(app, 1)
    ended = AttemptEnd(attempt, outcomes.of_result(None, 0.1, attempt))
    app._client.store.finish("w1", [ended])
    handle.result(timeout=30)
