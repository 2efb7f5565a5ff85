"""Waiting for results, on every store: what a caller gets, and what it does not wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

import pytest

from freehold import (
    BadInput,
    BadResult,
    Context,
    Freehold,
    JobCanceled,
    JobFailed,
    JobHandle,
    JobNotFound,
    Refused,
    ResultTimeout,
    Retry,
    Secret,
    StoreUnavailable,
)
from freehold.model.job import Attempt, ErrorInfo
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.types import AttemptEnd
from freehold.telemetry import running_attempt
from freehold.worker.execution import outcomes
from tests.client.helpers import awaited, claimed
from tests.concurrency import wait_until

pytestmark = pytest.mark.requirement("N5")
ONCE = Retry(max_attempts=1)


@dataclass
class Size:
    width: int
    height: int


def sized(side: int) -> Size:
    return Size(side, side)


def _end(app: Freehold, outcome: Outcome) -> Attempt:
    """Claims the only job, and ends its attempt."""
    (attempt,) = claimed(app)
    finished = app._client.store.finish("w1", [AttemptEnd(attempt, outcome)])
    assert attempt.job_id in finished.decisions
    return attempt


def _succeed(app: Freehold, value: Any) -> None:
    (attempt,) = claimed(app)
    ended = AttemptEnd(attempt, outcomes.of_result(value, 0.1, attempt))
    assert attempt.job_id in app._client.store.finish("w1", [ended]).decisions


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def _claimed_soon(app: Freehold) -> Attempt:
    """The job that another thread enqueues."""
    found: list[Attempt] = []

    def is_claimed() -> bool:
        found.extend(claimed(app))
        return bool(found)

    wait_until(is_claimed, "the job is enqueued")
    return found[0]


def test_a_result_has_the_type_that_the_task_returns(app: Freehold) -> None:
    handle: JobHandle[Size] = app.task(sized).enqueue(3)
    _succeed(app, Size(3, 3))
    assert handle.result(timeout=30) == Size(3, 3)
    assert awaited(app, handle.aresult(30)) == Size(3, 3)


def test_a_call_returns_the_value_of_the_function_that_ran_elsewhere(
    app: Freehold, thread: ThreadPoolExecutor
) -> None:
    caller = thread.submit(app.task(sized).using(wait=30).call, 4)
    attempt = _claimed_soon(app)
    ended = AttemptEnd(attempt, outcomes.of_result(Size(4, 4), 0.1, attempt))
    app._client.store.finish("w1", [ended])
    size: Size = caller.result(30)
    assert size == Size(4, 4)


def test_an_awaited_call_returns_what_the_coroutine_returned(app: Freehold) -> None:
    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async def caller() -> int:
        calling = asyncio.create_task(double.using(wait=30).acall(4))
        attempt = await asyncio.to_thread(_claimed_soon, app)
        ended = AttemptEnd(attempt, outcomes.of_result(8, 0.1, attempt))
        await app._client.awaited.finish("w1", [ended])
        return await calling

    assert awaited(app, caller()) == 8


def test_a_failed_job_raises_with_its_stored_error(app: Freehold) -> None:
    handle = app.task(retry=ONCE)(sized).enqueue(3)
    error = ErrorInfo("builtins.ValueError", "no size", "Traceback ...")
    _end(app, Outcome(kind=OutcomeKind.ERROR, error=error, reason="ValueError: no size"))
    with pytest.raises(JobFailed, match="ValueError: no size") as raised:
        handle.result(timeout=30)
    assert raised.value.job_id == handle.id
    assert raised.value.error_type == "builtins.ValueError"
    assert raised.value.error_message == "no size"
    assert raised.value.error_trace == "Traceback ..."


def test_a_failed_job_that_blocks_its_lane_raises_too(app: Freehold) -> None:
    """Its row is still live, because an operator may resume it."""
    handle = app.task(retry=ONCE)(sized).using(target="printer").enqueue(3)
    error = ErrorInfo("builtins.ValueError", "no size")
    _end(app, Outcome(kind=OutcomeKind.ERROR, error=error, reason="ValueError: no size"))
    with pytest.raises(JobFailed) as raised:
        handle.result(timeout=30)
    assert raised.value.error_message == "no size"


def test_a_canceled_job_raises_with_the_reason(app: Freehold) -> None:
    handle = app.task(sized).enqueue(3)
    handle.cancel("not needed any more")
    with pytest.raises(JobCanceled, match="not needed any more") as raised:
        handle.result(timeout=30)
    assert raised.value.job_id == handle.id


def test_a_wait_that_is_over_leaves_the_job_alone(app: Freehold) -> None:
    handle = app.task(sized).enqueue(3)
    with pytest.raises(TimeoutError, match=r"not ended within 0\.01 s, and goes on") as raised:
        handle.result(timeout=timedelta(seconds=0.01))
    assert isinstance(raised.value, ResultTimeout)
    assert raised.value.job_id == handle.id
    assert [each.job_id for each in claimed(app)] == [handle.id]
    with pytest.raises(TimeoutError):
        awaited(app, handle.aresult(0))


def test_a_deleted_job_is_not_waited_for(app: Freehold) -> None:
    handle = app.task(sized).enqueue(3)
    handle.cancel()
    app._client.store.delete([handle.id])
    with pytest.raises(JobNotFound, match=f"no job {handle.id}"):
        handle.result()
    with pytest.raises(JobNotFound):
        app.job(handle.id)
    with pytest.raises(JobNotFound):
        awaited(app, app.ajob(handle.id))


def test_a_result_that_no_longer_fits_the_type_is_named(app: Freehold) -> None:
    handle = app.task(sized).enqueue(3)
    _succeed(app, {"width": 3, "height": "three"})
    with pytest.raises(BadResult, match=r"does not fit .*Size.*: Expected `int`.* `height`") as bad:
        handle.result(timeout=30)
    assert bad.value.job_id == handle.id


def test_a_secret_result_reaches_its_caller_and_no_error_text(app: Freehold) -> None:
    @app.task
    def password() -> Annotated[str, Secret]:
        return "correct horse"

    handle = password.enqueue()
    _succeed(app, "correct horse")
    assert handle.result(timeout=30) == "correct horse"
    assert "correct horse" not in repr(handle.read())

    @app.task
    def number() -> Annotated[int, Secret]:
        return 7

    broken = number.enqueue()
    _succeed(app, "correct horse")
    with pytest.raises(BadResult) as bad:
        broken.result(timeout=30)
    assert "correct horse" not in str(bad.value)


def test_a_handle_of_a_stored_job_knows_the_type_of_its_result(app: Freehold) -> None:
    stored = app.task(sized).enqueue(3)
    _succeed(app, Size(3, 3))
    found = app.job(stored.id)
    assert (found.task, found.created) == (stored.task, False)
    assert found.result(timeout=30) == Size(3, 3)


@pytest.mark.parametrize("timeout", [-1, float("nan"), "soon"])
def test_a_senseless_timeout_is_refused(sqlite_app: Freehold, timeout: Any) -> None:
    task = sqlite_app.task(sized)
    with pytest.raises(BadInput, match="timeout="):
        task.enqueue(3).result(timeout)
    with pytest.raises(BadInput, match="timeout="):
        task.using(wait=timeout)


def test_a_call_inside_of_a_transaction_would_never_end(postgres_app: Freehold) -> None:
    with pytest.raises(BadInput, match="leave out connection="):
        postgres_app.task(sized).using(connection=object()).call(3)


def _calls(task: Any) -> list[Callable[[], Any]]:
    stored = task.enqueue(3)
    return [
        stored.result,
        lambda: asyncio.run(stored.aresult()),
        lambda: task.call(3),
        lambda: asyncio.run(task.acall(3)),
    ]


@pytest.mark.parametrize("way", range(4))
def test_a_handler_that_waits_for_a_job_is_refused_before_it_enqueues(
    sqlite_app: Freehold, way: int
) -> None:
    task = sqlite_app.task(sized)
    call = _calls(task)[way]
    (attempt,) = claimed(sqlite_app)
    token = running_attempt.set(attempt)
    try:
        with pytest.raises(Refused, match="inside its handler"):
            call()
    finally:
        running_attempt.reset(token)
    assert claimed(sqlite_app) == []


def test_waits_end_when_the_app_is_closed(app: Freehold, thread: ThreadPoolExecutor) -> None:
    handle = app.task(sized).enqueue(3)
    watcher = app._client.results
    caller = thread.submit(handle.result)
    wait_until(lambda: watcher.waited_for() == [handle.id], "the caller waits")
    app.close()
    with pytest.raises(StoreUnavailable, match="the app was closed"):
        caller.result(30)


def test_types_of_results_are_known_to_the_type_checker(sqlite_app: Freehold) -> None:
    @sqlite_app.task
    async def length(text: str) -> int:
        return len(text)

    @sqlite_app.task(queue="mail")
    async def with_context(ctx: Context, text: str) -> int:
        return len(text)

    @sqlite_app.task
    def plain(ctx: Context, text: str) -> str:
        return text

    first: JobHandle[int] = length.enqueue("a")
    second: JobHandle[int] = with_context.enqueue("a")
    third: JobHandle[str] = plain.enqueue("a")
    wrong: JobHandle[str] = length.enqueue("a")  # type: ignore[assignment]

    async def typed() -> tuple[int, str]:
        return await length.acall("a"), plain.call("a")

    assert len({first.id, second.id, third.id, wrong.id}) == 4
    assert typed is not None
