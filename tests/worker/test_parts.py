"""The life cycle of parts: a crash is logged and ends the group, an end is no crash."""

from __future__ import annotations

import asyncio
import logging

import pytest

from freehold.tasks import Registry
from freehold.testing.worker import virtual_worker
from freehold.worker.config import WorkerSettings
from freehold.worker.parts import PartGroup
from tests.stores import SqliteUnderTest


async def _crashes() -> None:
    raise ZeroDivisionError("a bug in a part")


async def _ends() -> None:
    await asyncio.sleep(0)


def test_a_part_that_crashes_is_logged_and_ends_its_group(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        ended = asyncio.Event()
        parts = PartGroup(on_crash=ended.set)
        other = parts.start("other", asyncio.Event().wait())
        parts.start("broken part", _crashes())
        await asyncio.wait_for(ended.wait(), 60)
        assert parts.has_crashed
        await parts.stop()
        assert other.cancelled()

    with caplog.at_level(logging.ERROR, "freehold"):
        asyncio.run(scenario())
    assert caplog.messages == ["the broken part crashed: ZeroDivisionError('a bug in a part')"]


def test_a_part_that_ends_or_is_stopped_has_not_crashed() -> None:
    async def scenario() -> None:
        parts = PartGroup(on_crash=_fail)
        await parts.start("short work", _ends())
        parts.start("long work", asyncio.Event().wait())
        await parts.stop()
        await parts.stop()
        assert not parts.has_crashed

    asyncio.run(scenario())


def _fail() -> None:
    raise AssertionError


def test_a_worker_that_is_drained_before_it_runs_claims_nothing() -> None:
    sqlite = SqliteUnderTest()
    job_id = sqlite.add()

    async def scenario() -> int:
        worker = virtual_worker(sqlite.database, Registry(), WorkerSettings(), chance=lambda: 0.5)
        worker.drain()
        return await worker.run()

    assert asyncio.run(scenario()) == 0
    assert sqlite.state(job_id) == "queued"
    sqlite.database.close()
