"""The lifespan of an app is opened once in each process that runs its jobs."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from freehold import BadInput, BadSettings, Context, Freehold, JobFailed, State
from freehold.client import Client
from freehold.clock import system_micros
from freehold.store.open import open_memory
from freehold.testing import Harness
from tests.worker import lifespan_app
from tests.worker.in_loop_worker import until
from tests.worker.lifespan_app import RECORD_VARIABLE, TASKS, Deps

pytestmark = pytest.mark.requirement("N19")


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "record"
    path.touch()
    monkeypatch.setenv(RECORD_VARIABLE, str(path))
    return path


@pytest.fixture
def app(record: Path) -> Iterator[Freehold]:
    """The app of the module, on an empty store."""
    app = lifespan_app.app
    before = app._swap_client(Client(open_memory(system_micros), tasks=app.tasks))
    yield app
    app.close()
    app._swap_client(before)


def noted(record: Path) -> dict[str, list[str]]:
    """What each process noted, by its id."""
    found: dict[str, list[str]] = {}
    for line in record.read_text().splitlines():
        what, process = line.split()
        found.setdefault(process, []).append(what)
    return found


def test_each_process_opens_it_once_before_its_jobs_and_closes_it_after_them(
    app: Freehold, record: Path
) -> None:
    jobs = [task.enqueue() for task in TASKS.values() for _ in range(2)]
    app.run_worker(until_idle=True, concurrency=1)
    assert [job.result(30) for job in jobs] == [("hello shared", True)] * len(jobs)
    lives = noted(record)
    assert set(map(tuple, lives.values())) == {("opened", "closed")}
    assert len(lives) == 2  # the worker and its one child
    assert str(os.getpid()) in lives


def test_a_coroutine_that_is_stopped_in_a_child_ends_before_the_lifespan_does(
    app: Freehold, record: Path
) -> None:
    job = lifespan_app.never_ends.enqueue()

    async def cancel_once_it_runs() -> None:
        worker = asyncio.create_task(app.arun_worker(until_idle=True))
        await until(lambda: "began" in record.read_text())
        await job.acancel()
        await worker
        await app._database.aclose()

    asyncio.run(cancel_once_it_runs())
    assert job.read().state is State.CANCELED
    (child,) = [each for process, each in noted(record).items() if process != str(os.getpid())]
    assert child == ["opened", "began", "ended", "closed"]


def test_a_lifespan_that_fails_in_a_child_is_the_error_of_the_attempt(
    app: Freehold, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is a folder, which cannot be appended to. The worker has opened it before."""
    job = TASKS["child"].enqueue()

    @asynccontextmanager
    async def only_here() -> AsyncIterator[Deps]:
        monkeypatch.setenv(RECORD_VARIABLE, "/")
        yield Deps("here", asyncio.get_running_loop())

    monkeypatch.setattr(app.tasks, "lifespan", only_here)
    app.run_worker(until_idle=True)
    with pytest.raises(JobFailed, match="Is a directory"):
        job.result(30)


def test_a_worker_whose_lifespan_fails_does_not_start() -> None:
    app = Freehold("sqlite://:memory:", lifespan=Refusing)
    app.migrate()
    with pytest.raises(RuntimeError, match="no pool"):
        app.run_worker(until_idle=True)


def test_a_harness_opens_it_for_its_runs_or_has_deps_of_the_test(record: Path) -> None:
    app, task = lifespan_app.app, TASKS["coroutine"]
    with Harness(app) as queue:
        first, second = task.enqueue(), task.enqueue()
        assert queue.run().succeeded == 2
        assert (first.result(), second.result()) == (("hello shared", True),) * 2
        assert noted(record) == {str(os.getpid()): ["opened"]}
    assert noted(record) == {str(os.getpid()): ["opened", "closed"]}
    with queue:  # again
        task.enqueue()
        assert queue.run().succeeded == 1
    assert noted(record) == {str(os.getpid()): ["opened", "closed"] * 2}
    with Harness(app, deps=Deps("a fake", None)) as queue:
        job = TASKS["function"].enqueue()
        queue.run()
        assert job.result() == ("hello a fake", True)
    assert noted(record) == {str(os.getpid()): ["opened", "closed"] * 2}


def test_without_a_lifespan_the_deps_say_what_to_give() -> None:
    app = Freehold("sqlite://:memory:")

    @app.task(name="task")
    def uses(ctx: Context[Deps]) -> str:
        return ctx.deps.name

    with Harness(app) as queue:
        uses.enqueue()
        with pytest.raises(BadInput, match=r"give Freehold\(lifespan=...\)"):
            queue.run(raise_errors=True)


class Refusing(AbstractContextManager[None]):
    def __enter__(self) -> None:
        raise RuntimeError("no pool")

    def __exit__(self, *_: object) -> None: ...


# -- app.running -----------------------------------------------------------------------------


def test_running_closes_the_app_and_runs_jobs_only_when_asked_to(tmp_path: Path) -> None:
    async def scenario() -> None:
        app = Freehold(str(tmp_path / "jobs.db"))

        @app.task(name="task")
        async def double(n: int) -> int:
            return 2 * n

        async with app.running():
            job = await double.aenqueue(2)
            assert "worker" not in {each.get_name() for each in asyncio.all_tasks()}
        async with app.running(worker=True):
            assert await (await app.ajob(job.id)).aresult(60) == 4
            assert await double.acall(4) == 8
        assert app._opened_client is None

    asyncio.run(scenario())


def test_at_the_end_of_running_a_job_has_its_grace_period_and_returns_to_the_queue(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        app = Freehold(str(tmp_path / "jobs.db"))
        began = asyncio.Event()

        @app.task(name="task")
        async def endless() -> None:
            began.set()
            await asyncio.Event().wait()

        async with app.running(worker=True, shutdown_grace_seconds=0):
            job = await endless.aenqueue()
            await began.wait()
        stored = app.operator.show(job.id).job
        app.close()
        assert (stored.state, stored.attempt) == (State.QUEUED, 0)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("settings", "text"),
    [({"concurency": 3}, "no setting concurency; it has queues"), ({"concurrency": 0}, "give 1")],
)
def test_wrong_settings_of_a_worker_fail_the_start_of_its_program(
    settings: dict[str, Any], text: str
) -> None:
    async def scenario() -> None:
        async with Freehold("sqlite://:memory:").running(worker=True, tenants="all", **settings):
            raise AssertionError("it has started")

    with pytest.raises(BadSettings, match=text):
        asyncio.run(scenario())


def test_a_worker_that_cannot_start_is_logged_and_the_program_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        app = Freehold("sqlite://:memory:", lifespan=Refusing)
        app.migrate()
        with caplog.at_level(logging.ERROR):
            async with app.running(worker=True):
                (worker,) = [each for each in asyncio.all_tasks() if each.get_name() == "worker"]
                await asyncio.wait({worker})
        assert "the worker of this program has ended with an error" in caplog.text

    asyncio.run(scenario())
