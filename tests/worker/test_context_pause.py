"""ctx.pause_queue: a handler that met a 429 lets its queue stand still, everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from freehold import BadInput, Retry, RetryLater
from freehold.model.explain import PauseInfo
from freehold.worker.execution.context import Context
from tests.worker import context_app
from tests.worker.workshop import Workshop, handler

REASON = "the API said 429"


def _pauses(ctx: Context) -> None:
    ctx.pause_queue(3600, REASON)


async def _apauses(ctx: Context) -> None:
    ctx.pause_queue(3600, REASON)


@pytest.fixture
def process_workshop(workshop: Workshop) -> Iterator[Workshop]:
    """The app whose tasks child processes can find, on this test's store."""
    context_app.app.url = workshop.app.url
    yield Workshop(context_app.app)
    context_app.app.close()


def pause_of(workshop: Workshop, queue: str = "default") -> PauseInfo | None:
    doors = workshop.app.client.store.doors(queue)
    return next((door.pause for door in doors if door.name == queue), None)


def paused_for(workshop: Workshop, pause: PauseInfo | None) -> float:
    assert pause is not None
    assert pause.until is not None
    return (pause.until - _now(workshop)).total_seconds()


def _now(workshop: Workshop) -> datetime:
    return workshop.app.operate.now()


@pytest.mark.parametrize("function", [_pauses, _apauses], ids=["function", "coroutine"])
def test_the_queue_stands_still_for_as_long_as_was_asked(
    workshop: Workshop, function: Callable[[Context], Any]
) -> None:
    first = workshop.add(function)
    second = workshop.app.tasks.get(function.__name__).using(queue="other").enqueue().id
    workshop.run(queues=("default",))
    pause = pause_of(workshop)
    assert pause is not None
    assert (pause.by, pause.reason) == (f"job {first}", REASON)
    assert 3500 < paused_for(workshop, pause) <= 3600
    assert pause_of(workshop, "other") is None
    waiting = workshop.app.tasks.get(function.__name__).using().enqueue().id
    workshop.run(queues=("default", "other"))
    assert workshop.job(waiting).state == "queued"
    assert workshop.job(second).state == "succeeded"


def test_a_child_process_can_ask_for_it_too(process_workshop: Workshop) -> None:
    job_id = context_app.pauses.enqueue().id
    process_workshop.run()
    pause = pause_of(process_workshop)
    assert pause is not None
    assert (pause.by, pause.reason) == (f"job {job_id}", REASON)
    assert 3500 < paused_for(process_workshop, pause) <= 3600


def test_it_is_written_before_the_attempt_ends(workshop: Workshop) -> None:
    """The job goes back to its queue, and is not claimed again while that stands still."""
    attempts: list[int] = []

    async def refused(ctx: Context) -> None:
        attempts.append(ctx.attempt)
        ctx.pause_queue(3600, REASON)
        raise RetryLater(0.0)

    job_id = workshop.add(refused, retry=Retry(max_attempts=10))
    workshop.run()
    assert attempts == [1]
    assert workshop.job(job_id).state == "queued"


@pytest.mark.parametrize("kind", ["coroutine", "function"])
def test_it_is_not_lost_where_the_job_ends_with_a_transaction(
    workshop: Workshop, kind: str
) -> None:
    job_id = workshop.add(handler(kind, lambda ctx, _: ctx.pause_queue(3600)))
    workshop.run()
    assert workshop.job(job_id).state == "succeeded"
    assert paused_for(workshop, pause_of(workshop)) > 3500


def test_a_pause_that_lasts_longer_stays(workshop: Workshop) -> None:
    until = _now(workshop) + timedelta(days=1)

    def pauses_shortly(ctx: Context) -> None:
        workshop.app.operate.pause_queue("default", "ann", "holiday", until)
        ctx.pause_queue(5, REASON)

    workshop.add(pauses_shortly)
    workshop.run()
    pause = pause_of(workshop)
    assert pause is not None
    assert (pause.by, pause.reason) == ("ann", "holiday")


def test_a_shorter_pause_is_prolonged(workshop: Workshop) -> None:
    def pauses_twice(ctx: Context) -> None:
        workshop.app.operate.pause_queue(
            "default", "ann", "tea", _now(workshop) + timedelta(minutes=1)
        )
        ctx.pause_queue(3600, REASON)

    workshop.add(pauses_twice)
    workshop.run()
    assert paused_for(workshop, pause_of(workshop)) > 3500


@pytest.mark.usefixtures("unnoticed")
@pytest.mark.requirement("S3.4")
def test_a_stale_owner_pauses_nothing(workshop: Workshop) -> None:
    def robbed(ctx: Context) -> None:
        workshop.steal(ctx.job.job_id)
        ctx.pause_queue(3600, REASON)

    workshop.add(robbed, retry=Retry(base_seconds=0))
    worker = workshop.run()
    assert pause_of(workshop) is None
    assert worker.telemetry.total("stale_writes", "note") == 1


def test_what_is_no_time_is_refused(sqlite_workshop: Workshop) -> None:
    refused: list[object] = []

    def pauses_oddly(ctx: Any) -> None:
        for seconds in (0, -1, float("nan"), float("inf"), "5", None):
            try:
                ctx.pause_queue(seconds)
            except BadInput:
                refused.append(seconds)

    job_id = sqlite_workshop.add(pauses_oddly)
    sqlite_workshop.run()
    assert sqlite_workshop.job(job_id).state == "succeeded"
    assert len(refused) == 6
    assert pause_of(sqlite_workshop) is None
