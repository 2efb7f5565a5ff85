"""Signals on event loops of every kind."""

from __future__ import annotations

import asyncio
import signal

import pytest

from freehold.worker.process_signals import stop_signals


class LoopWithoutSignals(asyncio.SelectorEventLoop):
    """As those of some platforms and libraries."""

    def add_signal_handler(self, *_: object) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("kind", [asyncio.SelectorEventLoop, LoopWithoutSignals])
def test_a_keyboard_interrupt_never_hits_the_code_of_a_handler(
    kind: type[asyncio.SelectorEventLoop],
) -> None:
    received: list[str] = []

    async def scenario() -> None:
        drained, stopped = asyncio.Event(), asyncio.Event()
        with stop_signals(drained.set, stopped.set):
            try:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGTERM)
            except BaseException as error:  # what a worker does with the errors of a handler
                received.append(repr(error))
            assert received == []
            async with asyncio.timeout(120):
                await drained.wait()
                await stopped.wait()

    before = signal.getsignal(signal.SIGINT)
    loop = kind()
    try:
        loop.run_until_complete(scenario())
    finally:
        loop.close()
    assert signal.getsignal(signal.SIGINT) is before
