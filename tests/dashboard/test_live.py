"""The stream of changes, and the task that notices them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from freehold.dashboard import watcher
from freehold.dashboard.watcher import AWAY, Watcher
from freehold.operator import AsyncOperator
from tests.dashboard.browser_client import BrowserClient

pytestmark = pytest.mark.requirement("N14")


@pytest.mark.parametrize(
    "topics",
    [
        "",
        "nothing",
        "job-",
        "job-0",
        "job-x",
        "job-9223372036854775808",
        "job-1" + "0" * 25,
        "flow-",
        "flow-0",
        "flow-x",
    ],
)
def test_a_topic_that_is_none_is_refused(sqlite_board: BrowserClient, topics: str) -> None:
    sqlite_board.board.service.closing = True
    visitor = sqlite_board.visitor()
    assert visitor.get(f"/live?topics={topics}").status_code == 422
    assert visitor.get("/live?topics=jobs,flow-1,job-9223372036854775807").status_code == 200


def test_an_error_does_not_end_the_watcher(
    sqlite_board: BrowserClient,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    reads: Iterator[int | ValueError] = iter([ValueError("a bug"), ValueError("a bug"), 1, 2])

    async def read(operator: AsyncOperator) -> int:
        value = next(reads, 2)
        if isinstance(value, ValueError):
            raise value
        return value

    async def follow() -> list[set[str]]:
        with Watcher(sqlite_board.app, 0.0).listening(frozenset({"jobs"})) as listener:
            found = [await listener.changes(120.0)]
            while "jobs" not in found[-1]:
                found.append(await listener.changes(120.0))
            return found

    monkeypatch.setitem(watcher.TOPICS, "jobs", read)
    found = sqlite_board.run(asyncio.wait_for(follow(), 120.0))
    assert AWAY in found[0]
    assert caplog.text.count("ValueError: a bug") == 1
