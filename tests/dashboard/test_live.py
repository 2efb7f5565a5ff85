"""The stream of changes, and the task that notices them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from freehold.dashboard import watcher
from freehold.dashboard.pages.live import _events
from freehold.dashboard.refreshing import Refreshing
from freehold.dashboard.watcher import AWAY, RESTING, Listener, Watcher
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


def test_a_page_is_loaded_again_after_the_first_look_at_its_topics(
    sqlite_board: BrowserClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while the watcher rests: only the topics that no other page has are read then."""
    reads: list[str] = []

    async def read(self: Watcher, topic: str) -> int:
        reads.append(topic)
        return 0

    async def follow() -> list[set[str]]:
        found = []
        watching = Watcher(sqlite_board.app)
        with watching.listening(frozenset({"jobs"})) as listener:
            found.append(await listener.changes(120.0))
            with watching.listening(frozenset({"jobs", "job-1"})) as other:
                found.append(await other.changes(120.0))
                found.append(await listener.changes(0.0))
        return found

    monkeypatch.setattr(Watcher, "read", read)
    monkeypatch.setattr(Refreshing, "rest_seconds", 3600.0)
    found = sqlite_board.run(asyncio.wait_for(follow(), 120.0))
    assert found == [{"jobs", RESTING}, {"jobs", "job-1", RESTING}, set()]
    assert reads == ["jobs", "job-1"]


def test_a_page_gets_the_length_of_each_long_rest_and_its_end() -> None:
    async def texts() -> list[str]:
        listener, found = Listener(frozenset({"jobs"})), []
        for seconds in (1.0, 12.0, 12.0, 0.5, 0.5):
            listener.rest(seconds)
            found.append("".join(_events(await listener.changes(0.0), listener.rest_seconds)))
        listener.add({"jobs"})
        listener.rest(30.0)
        return [*found, *_events(await listener.changes(0.0), listener.rest_seconds)]

    rest = "event: resting\ndata: {}\n\n".format
    assert asyncio.run(texts()) == [
        *("", rest(12), rest(12), rest(0), ""),
        rest(30),
        "event: changed\ndata: jobs\n\n",
    ]
