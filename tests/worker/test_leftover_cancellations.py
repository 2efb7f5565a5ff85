"""A cancellation that a handler leaves behind does not keep its job from ending."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from freehold import State
from freehold.worker.execution.context import Context
from freehold.worker.execution.runner import Runner
from freehold.worker.held_leases import HeldLease
from freehold.worker.job_log.writer import JobLogWriter
from tests.worker.local_worker import AT_ONCE, ONCE, LocalWorker


def _task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


def _at_once() -> None:
    _task().cancel()


def _twice() -> None:
    _task().cancel()
    _task().cancel()


def _taken_back() -> None:
    """Before Python 3.13 the cancellation stays pending, though it no longer counts."""
    _task().cancel()
    _task().uncancel()


def _soon() -> None:
    asyncio.get_running_loop().call_soon(_task().cancel)


def _again_and_again() -> None:
    """As a timeout of the handler's own that fires while its log is written."""
    task, loop = _task(), asyncio.get_running_loop()

    def cancel() -> None:
        if not task.done():
            task.cancel()
            loop.call_later(0.001, cancel)

    loop.call_soon(cancel)


@pytest.mark.requirement("S2.5", "S3.8")
@pytest.mark.timeout(30)  # its lease would be renewed for ever
@pytest.mark.parametrize("leave", [_at_once, _twice, _taken_back, _soon, _again_and_again])
@pytest.mark.either_store
def test_a_job_with_a_leftover_cancellation_ends_and_its_lane_continues(
    local_worker: LocalWorker, leave: Callable[[], None]
) -> None:
    async def leaves(ctx: Context) -> int:
        ctx.log("a line")
        leave()
        return 1

    task = local_worker.app.task(name="leaves", retry=ONCE)(leaves)
    ids = [task.using(target="lane").enqueue().id for _ in range(2)]
    local_worker.run()
    for job_id in ids:
        job = local_worker.job(job_id)
        assert (job.state, job.attempt) == (State.SUCCEEDED, 1)
        assert job.report is not None
        assert job.report.result == 1
        assert local_worker.lines(job_id) == ["a line"]


@pytest.mark.requirement("S2.5", "S3.8")
@pytest.mark.timeout(30)
@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError])
@pytest.mark.either_store
def test_a_job_log_that_breaks_does_not_keep_the_outcome_from_being_written(
    local_worker: LocalWorker, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(*_: Any) -> None:
        raise error

    async def logs(ctx: Context) -> int:
        ctx.log("a line")
        return 1

    monkeypatch.setattr(JobLogWriter, "flush_attempt", breaks)
    job_id = local_worker.add(logs, retry=ONCE)
    local_worker.run()
    assert local_worker.job(job_id).state is State.SUCCEEDED


@pytest.mark.requirement("S2.5", "S3.8")
@pytest.mark.timeout(30)
def test_the_lease_of_a_canceled_attempt_with_a_thread_expires_by_itself(
    local_worker: LocalWorker,
) -> None:
    """The thread cannot be stopped. Its context shows that it should stop."""
    canceled: list[bool] = []
    worker_attempts: list[asyncio.Task[Any]] = []

    def waits(ctx: Context) -> int:
        if ctx.attempt == 2:
            return 2
        (task,) = worker_attempts
        task.get_loop().call_soon_threadsafe(task.cancel)
        while not ctx.canceled:
            time.sleep(0.01)
        canceled.append(True)
        return 1

    original = Runner.run

    async def run(self: Runner, lease: HeldLease) -> Any:
        worker_attempts[:] = [_task()]
        return await original(self, lease)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runner, "run", run)
        job_id = local_worker.add(waits, retry=AT_ONCE)
        local_worker.run(lease_timeout_seconds=1.0)
        while local_worker.job(job_id).state is not State.SUCCEEDED:
            local_worker.run(lease_timeout_seconds=1.0)
    assert canceled == [True]
    assert local_worker.job(job_id).report is not None
