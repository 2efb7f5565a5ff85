"""Handlers that are plain functions, on virtual time."""

from __future__ import annotations

import asyncio
import threading

import pytest

from freehold import Freehold
from freehold.testing import Harness, InlineThreads
from tests.testing.virtual_app import VirtualApp


def test_a_plain_function_sees_no_running_loop_and_may_run_its_own(virtual: VirtualApp) -> None:
    def function() -> str:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return asyncio.run(asyncio.sleep(0, "from a loop of its own"))

    async def scenario() -> tuple[str, bool]:
        before = asyncio.current_task()
        result: str = await InlineThreads().run(function)
        return result, asyncio.current_task() is before

    assert virtual.run(scenario()) == ("from a loop of its own", True)


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_an_exception_of_a_plain_function_is_delivered(
    virtual: VirtualApp, error: BaseException
) -> None:
    def function() -> None:
        raise error

    async def scenario() -> BaseException | None:
        future = InlineThreads().run(function)
        await asyncio.wait({future})
        return future.exception()

    assert virtual.run(scenario()) is error


def test_a_plain_handler_runs_in_the_thread_of_the_test_and_can_enqueue() -> None:
    app = Freehold("sqlite://:memory:")
    threads = []

    @app.task(name="first")
    def first() -> None:
        threads.append(threading.current_thread())
        second.enqueue(1)

    @app.task(name="second", queue="other")
    def second(number: int) -> None:
        threads.append(threading.current_thread())

    with Harness(app) as queue:
        first.enqueue()
        assert queue.run().succeeded == 2
    assert set(threads) == {threading.current_thread()}
