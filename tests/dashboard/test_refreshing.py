"""What open pages read together, and how much of the time it takes."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from freehold.dashboard.pages import queues
from freehold.dashboard.refreshing import Refreshing
from freehold.dashboard.watcher import Watcher
from freehold.errors import StoreUnavailable
from freehold.model.limit import Limit
from freehold.operator import AsyncOperator
from tests.dashboard.browser_client import BrowserClient
from tests.dashboard.test_pages import PART

pytestmark = pytest.mark.requirement("N14")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def _take(clock: Clock, refreshing: Refreshing, seconds: float) -> None:
    async def run() -> None:
        clock.now += seconds

    await refreshing.measured(run)


def test_the_watcher_rests_for_what_was_read_beyond_a_burst() -> None:
    clock = Clock()
    refreshing = Refreshing(clock)
    asyncio.run(_take(clock, refreshing, 0.4))
    assert refreshing.rest_seconds == 0.0
    asyncio.run(_take(clock, refreshing, 0.2))
    assert refreshing.rest_seconds == pytest.approx(10.0, abs=0.5)
    clock.now += 5.0
    assert refreshing.rest_seconds == pytest.approx(5.0, abs=0.5)
    asyncio.run(_take(clock, refreshing, 60.0))
    assert refreshing.rest_seconds == pytest.approx(30.0)
    clock.now += 31.0
    assert refreshing.rest_seconds == 0.0  # one slow read is not followed by many rests


def test_a_store_that_is_away_is_looked_at_soon() -> None:
    clock = Clock()
    refreshing = Refreshing(clock)

    async def fails() -> None:
        clock.now += 10.0
        raise StoreUnavailable("no connection within 10 s")

    with pytest.raises(StoreUnavailable):
        asyncio.run(refreshing.measured(fails))
    assert refreshing.rest_seconds == 0.0


def test_a_page_without_a_stream_looks_as_rarely_as_the_watcher(
    sqlite_board: BrowserClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor, looks = sqlite_board.visitor(), {**PART, "X-Looks-By-Itself": "true"}
    assert visitor.get("/queues", headers=looks).status_code == 200
    monkeypatch.setattr(Refreshing, "rest_seconds", 11.5)
    later = visitor.get("/queues", headers=looks)
    assert (later.status_code, later.headers["retry-after"]) == (304, "12")
    assert visitor.get("/queues", headers=PART).status_code == 200


def test_a_value_is_read_once_until_something_changes() -> None:
    clock = Clock()
    refreshing, reads = Refreshing(clock), Counter[str]()

    async def read() -> int:
        reads["all"] += 1
        return reads["all"]

    async def many() -> list[int]:
        return await asyncio.gather(*(refreshing.shared("x", read) for _ in range(20)))

    assert asyncio.run(many()) == [1] * 20
    refreshing.forget()
    assert asyncio.run(many()) == [2] * 20
    clock.now += 2.0
    assert asyncio.run(many()) == [3] * 20


def test_an_error_is_not_shared_with_later_pages() -> None:
    refreshing = Refreshing(Clock())

    async def fails() -> int:
        raise ValueError("away")

    async def works() -> int:
        return 1

    async def both() -> int:
        with pytest.raises(ValueError, match="away"):
            await refreshing.shared("x", fails)
        return await refreshing.shared("x", works)

    assert asyncio.run(both()) == 1


def test_open_pages_share_a_list_and_each_new_page_reads_it(
    sqlite_board: BrowserClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = Counter[str]()
    plain = queues._values

    async def counting(operator: AsyncOperator) -> dict[str, Any]:
        reads["queues"] += 1
        return await plain(operator)

    monkeypatch.setattr(queues, "_values", counting)
    monkeypatch.setattr(Watcher, "is_running", True)
    visitor = sqlite_board.visitor()
    for _ in range(3):
        assert visitor.get("/queues", headers=PART).status_code == 200
    assert reads["queues"] == 1
    visitor.page("/queues")
    assert reads["queues"] == 2
    sqlite_board.app.operator.set_queue_limit("mail", Limit(2), by="ann")
    visitor.done("/queues/mail/pause")
    assert "mail" in visitor.get("/queues", headers=PART).text
