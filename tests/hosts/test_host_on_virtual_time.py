"""A host and its tenants: who is served, at what cost, and what trouble does to the others."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from freehold.exit_codes import EXIT_CRASHED
from freehold.model.tenant import TenantState
from freehold.tasks import Registry
from freehold.tenants.wake_schedule import IDLE_SECONDS
from tests.hosts.town import Town


@pytest.fixture
def town() -> Town:
    return Town()


def job(town: Town, seconds: float = 0.01, log: list[Any] | None = None, name: str = "job") -> Any:
    @town.app.task(name=name)
    async def job(word: str = "") -> None:
        if log is not None:
            log.append(word)
        await asyncio.sleep(seconds)

    return job


@pytest.mark.requirement("S4.2")
def test_all_tenants_are_served_and_all_go_when_nothing_is_left(town: Town) -> None:
    names = [f"t{number}" for number in range(50)]
    town.add(*names)
    task = job(town)

    async def scene() -> None:
        async with town.hosting(concurrency=4) as host:
            for name in names:
                town.enqueue(name, task, count=3)
            await town.until(lambda: all(town.succeeded(name) == 3 for name in names), 60)
            await town.until(lambda: not host.lodgers, 3 * IDLE_SECONDS)
            assert host.capacity.in_hand == host.capacity.running == 0

    town.play(scene())


@pytest.mark.requirement("S4.2")
@pytest.mark.parametrize("is_deaf", [False, True])
def test_idle_tenants_are_asked_nothing_and_their_place_once_in_a_while(
    town: Town, is_deaf: bool
) -> None:
    town.add(*[f"t{number}" for number in range(20)])
    town.home.is_deaf = is_deaf
    job(town)

    async def scene() -> None:
        async with town.hosting(poll_seconds=0.25):
            await asyncio.sleep(700.0)
            looks, statements = town.home.looks, town.statements()
            await asyncio.sleep(60.0)
            looks = town.home.looks - looks
            assert looks <= (60 / 0.25 if is_deaf else 60) + 1
            # The upkeep visits each of the 20 within 640 s by now, and soon within an hour.
            assert town.statements() - statements <= 3 * 4

    town.play(scene())


@pytest.mark.requirement("S4.2")
def test_what_was_put_aside_in_a_sleeping_tenant_comes_back_with_a_process_that_knows_it(
    town: Town,
) -> None:
    town.add("a")
    task = job(town)

    async def scene() -> None:
        town.enqueue("a", task)
        assert await town.host(Registry(), until_idle=True).run() == 0
        assert town.succeeded("a") == 0
        async with town.hosting():
            await town.until(lambda: town.succeeded("a") == 1, 10)

    town.play(scene())


@pytest.mark.requirement("S4.2")
def test_what_an_older_process_puts_aside_beside_a_newer_one_does_not_wait_for_an_hour(
    town: Town,
) -> None:
    """The newer one hears nothing, and when it looks, the job is no longer ready."""
    town.add("a")
    town.home.is_deaf = True
    task = job(town)

    async def scene() -> None:
        async with town.hosting() as host:
            await asyncio.sleep(60.0)
            assert not host.lodgers
            town.enqueue("a", task)
            town.put_aside("a")
            await town.until(lambda: town.succeeded("a") == 1, 2 * 60.0)

    town.play(scene())


@pytest.mark.requirement("S4.3")
@pytest.mark.parametrize("sleeps", [True, False])
def test_a_lane_that_nobody_holds_any_more_goes_on(town: Town, sleeps: bool) -> None:
    town.add("a")
    task = job(town)
    lasts = job(town, 200.0, name="lasts")

    async def scene() -> None:
        async with town.hosting():
            await asyncio.sleep(60.0)
            if not sleeps:
                town.enqueue("a", lasts)
            town.enqueue("a", task, target="lane", count=2)
            town.set_adrift("a")
            await town.until(lambda: town.succeeded("a") == 1, 2 * 60.0)

    town.play(scene())


@pytest.mark.parametrize("is_deaf", [False, True])
def test_what_falls_due_in_a_sleeping_tenant_is_run(town: Town, is_deaf: bool) -> None:
    town.add("a", "b")
    town.home.is_deaf = is_deaf
    task = job(town)

    async def scene() -> None:
        async with town.hosting() as host:
            town.enqueue("b", task, delay=3600)
            await asyncio.sleep(3590)
            assert not host.lodgers
            assert await town.until(lambda: town.succeeded("b") == 1, 20) <= 10 + 1.5

    town.play(scene())


@pytest.mark.requirement("S4.2", "S3.6")
def test_shares_follow_the_weights_while_all_are_busy(town: Town) -> None:
    for name, weight in (("five", 5.0), ("three", 3.0), ("one", 1.0)):
        town.add(name, weight=weight)
    log: list[str] = []
    task = job(town, 0.02, log)

    async def scene() -> None:
        for name in ("five", "three", "one"):
            town.enqueue(name, task, name, count=600)
        async with town.hosting(concurrency=10):
            await town.until(lambda: len(log) >= 900, 60)

    town.play(scene())
    counts = Counter(log[:900])
    assert counts["five"] == pytest.approx(500, rel=0.1)
    assert counts["three"] == pytest.approx(300, rel=0.1)
    assert counts["one"] == pytest.approx(100, rel=0.1)


def test_no_more_run_than_there_are_slots_and_no_more_of_one_than_it_may(town: Town) -> None:
    town.add("bound", max_slots=2, weight=100.0)
    town.add("free")
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()

    @town.app.task(name="counted")
    async def counted(name: str) -> None:
        for key in (name, "all"):
            running[key] += 1
            most[key] = max(most[key], running[key])
        await asyncio.sleep(0.02)
        for key in (name, "all"):
            running[key] -= 1

    async def scene() -> None:
        for name in ("bound", "free"):
            town.enqueue(name, counted, name, count=200)
        async with town.hosting(concurrency=6):
            await town.until(lambda: town.succeeded("bound") + town.succeeded("free") == 400, 60)

    town.play(scene())
    assert most == {"all": 6, "bound": 2, "free": most["free"]}


@pytest.mark.requirement("S4.2")
def test_a_broken_tenant_is_marked_left_alone_and_taken_back(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    town.add("bad", "good")
    town.home.broken["bad"] = "its table is gone"
    task = job(town)

    async def scene() -> None:
        async with town.hosting() as host:
            town.enqueue("bad", task, count=2)
            town.enqueue("good", task, count=2)
            await town.until(lambda: town.succeeded("good") == 2, 10)
            await asyncio.sleep(300)
            assert town.told == [("bad", "its table is gone")]
            assert town.state("bad") is TenantState.DEGRADED
            assert "bad" not in host.lodgers
            del town.home.broken["bad"]
            await town.until(lambda: town.succeeded("bad") == 2, 65)
            assert town.told[1:] == [("bad", "healed")]
            assert town.state("bad") is TenantState.ACTIVE

    with caplog.at_level("ERROR", "freehold"):
        town.play(scene())
    assert [record.getMessage() for record in caplog.records] == [
        "tenant bad is degraded and left alone for now: its table is gone"
    ]


@pytest.mark.requirement("S4.2")
def test_a_worker_that_crashes_takes_nobody_along(town: Town) -> None:
    town.add("bad", "good")
    task = job(town, 1.0)

    async def scene() -> None:
        async with town.hosting() as host:
            town.enqueue("bad", task, count=2)
            town.enqueue("good", task, count=100)
            await town.until(lambda: "bad" in host.lodgers and "good" in host.lodgers, 10)
            await asyncio.sleep(0.01)
            host.lodgers["bad"].worker._keeper._give_up_expired = None  # type: ignore[method-assign,assignment]
            host.lodgers["bad"].worker._keeper.poke()
            await town.until(lambda: len(town.told) == 1, 60)
            assert town.told == [("bad", "its worker crashed: see the log")]
            await town.until(lambda: town.succeeded("bad") == 2, 120)
            await town.until(lambda: town.succeeded("good") == 100, 120)
            assert town.state("bad") is TenantState.ACTIVE

    town.play(scene())


def test_a_part_of_the_host_that_crashes_ends_it_and_leaves_nothing_leased(town: Town) -> None:
    town.add("a")
    task = job(town, 60.0)

    async def scene() -> int:
        town.enqueue("a", task, count=5)
        host = town.host()
        running = asyncio.create_task(host.run())
        await town.until(lambda: town.leased() == 5, 10)
        host.roster = None  # type: ignore[assignment]
        return await running

    assert town.play(scene()) == EXIT_CRASHED
    assert town.leased() == 0


@pytest.mark.requirement("S4.11", "S4.2")
@pytest.mark.parametrize("hurried", [False, True])
def test_drain_leaves_nothing_leased_in_any_tenant(town: Town, hurried: bool) -> None:
    names = [f"t{number}" for number in range(5)]
    town.add(*names)
    task = job(town, 30.0)

    async def scene() -> float:
        for name in names:
            town.enqueue(name, task, count=5)
        host = town.host(concurrency=10, grace_seconds=300.0)
        running = asyncio.create_task(host.run())
        await asyncio.sleep(0.001)
        await town.until(lambda: host.capacity.running == 10, 10)
        began = asyncio.get_running_loop().time()
        host.drain()
        await asyncio.sleep(1.0)
        if hurried:
            host.hurry()
        assert await running == 0
        return asyncio.get_running_loop().time() - began

    took = town.play(scene())
    assert town.leased() == 0
    done = sum(town.succeeded(name) for name in names)
    assert done == (0 if hurried else 10)
    assert took < 5 if hurried else 25 < took < 35


def test_who_is_paused_in_the_directory_goes_and_comes_back(town: Town) -> None:
    town.add("a", "b")
    task = job(town, 1.0)

    async def scene() -> None:
        async with town.hosting(concurrency=2) as host:
            town.enqueue("a", task, count=60)
            await town.until(lambda: town.succeeded("a") >= 2, 20)
            town.change("a", state=TenantState.PAUSED)
            await town.until(lambda: "a" not in host.lodgers, 10)
            done = town.succeeded("a")
            await asyncio.sleep(60)
            assert town.succeeded("a") == done
            town.change("a", state=TenantState.ACTIVE)
            await town.until(lambda: town.succeeded("a") == 60, 60)

    town.play(scene())


def test_a_host_until_idle_serves_all_and_ends(town: Town) -> None:
    names = [f"t{number}" for number in range(40)]
    town.add(*names, "broken")
    town.home.broken["broken"] = "no table"
    task = job(town, 0.5)

    async def scene() -> int:
        for name in names:
            town.enqueue(name, task, count=2)
        return await town.host(concurrency=4, until_idle=True).run()

    assert town.play(scene()) == 0
    assert all(town.succeeded(name) == 2 for name in names)


def test_the_registry_shows_each_tenant_its_own_numbers(town: Town) -> None:
    town.add("small", max_slots=3)
    town.add("large")
    task = job(town, 30.0)

    async def scene() -> None:
        async with town.hosting(concurrency=10):
            town.enqueue("small", task, count=20)
            await town.until(lambda: town.leased() == 3, 10)
            town.enqueue("large", task, count=20)
            await town.until(lambda: town.leased() == 10, 10)
            await asyncio.sleep(3.0)
            for name, slots, running in (("small", 3, 3), ("large", 10, 7)):
                (live,) = town._clients[name].store.workers()
                assert (live.concurrency, live.running) == (slots, running)

    town.play(scene())
