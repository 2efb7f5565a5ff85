"""The virtual loop: it skips waiting, except for threads and sockets."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest

from freehold.testing import NothingLeft
from tests.testing.virtual_app import VirtualApp


def test_a_day_passes_in_no_time(virtual: VirtualApp) -> None:
    async def scenario() -> float:
        await asyncio.sleep(86_400)
        return asyncio.get_running_loop().time()

    began = time.monotonic()
    assert virtual.run(scenario()) == 86_400
    assert time.monotonic() - began < 60


def test_the_loop_and_the_store_read_one_clock(virtual: VirtualApp) -> None:
    async def scenario() -> float:
        before = virtual.app.operator.now()
        await asyncio.sleep(0.25)
        virtual.clock.advance(3)
        return (virtual.app.operator.now() - before).total_seconds()

    assert virtual.run(scenario()) == 3.25


def test_timers_fire_in_their_order_at_their_time(virtual: VirtualApp) -> None:
    async def scenario() -> list[tuple[float, float]]:
        loop = asyncio.get_running_loop()
        fired: list[tuple[float, float]] = []

        def fire(seconds: float) -> None:
            fired.append((seconds, loop.time()))

        for seconds in (3.0, 0.000001, 0.1 + 0.2, 0.3, 1e-9, 7200.5):
            loop.call_later(seconds, fire, seconds)
        await asyncio.sleep(10_000)
        return fired

    fired = virtual.run(scenario())
    assert [seconds for seconds, _ in fired] == sorted(seconds for seconds, _ in fired)
    assert all(abs(at - seconds) <= 0.000001 for seconds, at in fired)


def test_an_endless_wait_is_an_error_that_names_the_waiting_tasks(virtual: VirtualApp) -> None:
    async def scenario() -> None:
        asyncio.current_task().set_name("the forgotten")  # type: ignore[union-attr]
        await asyncio.Event().wait()

    with pytest.raises(NothingLeft, match=r"can never happen.*the forgotten"):
        virtual.run(scenario())


def test_time_is_not_skipped_while_a_thread_runs(virtual: VirtualApp) -> None:
    async def scenario() -> float:
        async with asyncio.timeout(30):
            await asyncio.to_thread(release.wait)
        return asyncio.get_running_loop().time()

    release = threading.Event()
    timer = threading.Timer(0.02, release.set)
    timer.start()
    assert virtual.run(scenario()) == 0
    timer.join()


def test_time_is_not_skipped_while_a_socket_is_awaited(virtual: VirtualApp) -> None:
    async def scenario() -> bytes:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(30):
            return await loop.sock_recv(ours, 10)

    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        timer = threading.Timer(0.02, theirs.send, [b"hello"])
        timer.start()
        assert virtual.run(scenario()) == b"hello"
        timer.join()
