"""ctx.pause_queue: a handler that got a 429 pauses its queue on all workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from freehold import BadInput, Retry, RetryLater
from freehold.model.explain import PauseInfo
from freehold.worker.execution.context import Context
from tests.worker import context_app
from tests.worker.local_worker import LocalWorker, handler

REASON = "the API returned 429"


def _pauses(ctx: Context) -> None:
    ctx.pause_queue(3600, REASON)


async def _apauses(ctx: Context) -> None:
    ctx.pause_queue(3600, REASON)


@pytest.fixture
def process_local_worker(local_worker: LocalWorker) -> Iterator[LocalWorker]:
    """The app with tasks that child processes can import, on this test's store."""
    context_app.app.url = local_worker.app.url
    yield LocalWorker(context_app.app)
    context_app.app.close()


def pause_of(local_worker: LocalWorker, queue: str = "default") -> PauseInfo | None:
    queue_rules = local_worker.app._client.store.queue_rules(queue)
    return next((rules.pause for rules in queue_rules if rules.name == queue), None)


def paused_for(local_worker: LocalWorker, pause: PauseInfo | None) -> float:
    assert pause is not None
    assert pause.until is not None
    return (pause.until - _now(local_worker)).total_seconds()


def _now(local_worker: LocalWorker) -> datetime:
    return local_worker.app.operator.now()


@pytest.mark.parametrize("function", [_pauses, _apauses], ids=["function", "coroutine"])
def test_the_queue_is_paused_for_the_requested_time(
    local_worker: LocalWorker, function: Callable[[Context], Any]
) -> None:
    first = local_worker.add(function)
    second = local_worker.app.tasks.get(function.__name__).using(queue="other").enqueue().id
    local_worker.run(queues=("default",))
    pause = pause_of(local_worker)
    assert pause is not None
    assert (pause.by, pause.reason) == (f"job {first}", REASON)
    assert 3500 < paused_for(local_worker, pause) <= 3600
    assert pause_of(local_worker, "other") is None
    waiting = local_worker.app.tasks.get(function.__name__).using().enqueue().id
    local_worker.run(queues=("default", "other"))
    assert local_worker.job(waiting).state == "queued"
    assert local_worker.job(second).state == "succeeded"


def test_a_child_process_can_pause_its_queue(process_local_worker: LocalWorker) -> None:
    job_id = context_app.pauses.enqueue().id
    process_local_worker.run()
    pause = pause_of(process_local_worker)
    assert pause is not None
    assert (pause.by, pause.reason) == (f"job {job_id}", REASON)
    assert 3500 < paused_for(process_local_worker, pause) <= 3600


def test_the_pause_is_written_before_the_attempt_ends(local_worker: LocalWorker) -> None:
    """The job returns to its queue, and is not claimed again while the queue is paused."""
    attempts: list[int] = []

    async def refused(ctx: Context) -> None:
        attempts.append(ctx.attempt)
        ctx.pause_queue(3600, REASON)
        raise RetryLater(0.0)

    job_id = local_worker.add(refused, retry=Retry(max_attempts=10))
    local_worker.run()
    assert attempts == [1]
    assert local_worker.job(job_id).state == "queued"


@pytest.mark.parametrize("kind", ["coroutine", "function"])
def test_the_pause_is_not_lost_when_the_job_ends_with_a_transaction(
    local_worker: LocalWorker, kind: str
) -> None:
    job_id = local_worker.add(handler(kind, lambda ctx, _: ctx.pause_queue(3600)))
    local_worker.run()
    assert local_worker.job(job_id).state == "succeeded"
    assert paused_for(local_worker, pause_of(local_worker)) > 3500


def test_a_pause_that_lasts_longer_stays(local_worker: LocalWorker) -> None:
    until = _now(local_worker) + timedelta(days=1)

    def pauses_shortly(ctx: Context) -> None:
        local_worker.app.operator.pause_queue("default", "ann", "holiday", until)
        ctx.pause_queue(5, REASON)

    local_worker.add(pauses_shortly)
    local_worker.run()
    pause = pause_of(local_worker)
    assert pause is not None
    assert (pause.by, pause.reason) == ("ann", "holiday")


def test_a_shorter_pause_is_prolonged(local_worker: LocalWorker) -> None:
    def pauses_twice(ctx: Context) -> None:
        local_worker.app.operator.pause_queue(
            "default", "ann", "tea", _now(local_worker) + timedelta(minutes=1)
        )
        ctx.pause_queue(3600, REASON)

    local_worker.add(pauses_twice)
    local_worker.run()
    assert paused_for(local_worker, pause_of(local_worker)) > 3500


@pytest.mark.usefixtures("slow_renewer")
@pytest.mark.requirement("S3.4")
def test_a_stale_owner_pauses_nothing(local_worker: LocalWorker) -> None:
    def loses_its_lease(ctx: Context) -> None:
        local_worker.steal(ctx.job.job_id)
        ctx.pause_queue(3600, REASON)

    local_worker.add(loses_its_lease, retry=Retry(base_seconds=0))
    worker = local_worker.run()
    assert pause_of(local_worker) is None
    assert worker.telemetry.total("stale_writes", "append_log") == 1


def test_an_invalid_time_is_refused(sqlite_local_worker: LocalWorker) -> None:
    refused: list[object] = []

    def pauses_wrongly(ctx: Any) -> None:
        for seconds in (0, -1, float("nan"), float("inf"), "5", None):
            try:
                ctx.pause_queue(seconds)
            except BadInput:
                refused.append(seconds)

    job_id = sqlite_local_worker.add(pauses_wrongly)
    sqlite_local_worker.run()
    assert sqlite_local_worker.job(job_id).state == "succeeded"
    assert len(refused) == 6
    assert pause_of(sqlite_local_worker) is None
