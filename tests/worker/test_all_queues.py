"""A worker without named queues serves all of them, also those that appear later."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from functools import partial

import pytest

from freehold.clock import VirtualClock
from freehold.errors import StoreUnavailable
from freehold.model.job import DEFAULT_QUEUE, Attempt
from freehold.model.limit import Limit
from freehold.store.types import ClaimRequest, SetAside
from freehold.store.verbs.claim import ClaimCursors
from freehold.testing.virtual_loop import VirtualLoop
from freehold.worker.claimer import FIND_LIMIT, FIND_SECONDS, FORGET_SECONDS, Claimer, ServedQueues
from tests.testing.virtual_app import VirtualApp, task_of_a_second
from tests.worker.lone_claimer import claimer_without_jobs


@pytest.mark.parametrize("is_notified", [True, False])
def test_queues_that_appear_later_are_served(virtual: VirtualApp, is_notified: bool) -> None:
    virtual.database.has_no_notifications = not is_notified
    log: list[str] = []
    task = task_of_a_second(virtual, log)

    async def scenario() -> None:
        async with virtual.working():
            for queue in ("default", "mail", "reports"):
                await asyncio.sleep(60.0)
                await task.using(queue=queue).aenqueue(queue)
                await virtual.until(partial(log.__contains__, queue), 1.0)

    virtual.run(scenario())


def test_a_new_queue_gets_its_share_while_the_worker_is_busy(virtual: VirtualApp) -> None:
    log: list[str] = []
    task = task_of_a_second(virtual, log)

    async def scenario() -> None:
        for _ in range(400):
            task.using(queue="many").enqueue("many")
        async with virtual.working(concurrency=4, shutdown_grace_seconds=5.0):
            await virtual.until(lambda: len(log) >= 100, 60.0)
            for _ in range(100):
                task.using(queue="new").enqueue("new")
            before = len(log)
            await virtual.until(lambda: len(log) >= before + 100, 60.0)
        shares = Counter(log[before : before + 100])
        # The jobs that are leased already, and those of one interval between two reads, are "many".
        assert shares["new"] >= 50 - 4 * (FIND_SECONDS + 2)

    virtual.run(scenario())


def test_an_idle_worker_reads_the_list_of_queues_instead_of_claiming(virtual: VirtualApp) -> None:
    async def scenario() -> None:
        async with virtual.working():
            await asyncio.sleep(600.0)

    virtual.run(scenario())
    reads = virtual.database.times("ready_queues")
    assert len(reads) < 100
    assert not virtual.database.times("claim")
    assert not virtual.database.times("claim_plain")


class Directory:
    """Many queues, or an unreachable store."""

    def __init__(self, *names: str) -> None:
        self.names = sorted(names)
        self.reads = 0
        self.is_away = False

    async def ready_queues(self, after: str, limit: int) -> list[str]:
        self.reads += 1
        if self.is_away:
            raise StoreUnavailable("the connection was refused")
        return [name for name in self.names if name > after][:limit]


def test_a_notified_queue_is_claimed_from_before_the_next_read() -> None:
    store, time = Directory("a"), 0.0
    queues = ServedQueues(store, ("*",), lambda: time)
    asyncio.run(queues.refresh())
    assert (queues.active, store.reads, queues.unsure_seconds()) == (["a"], 1, 0.0)
    time = 60.0
    queues.look_again()
    store.names = ["b", "c"]
    assert queues.serves("b")
    asyncio.run(queues.refresh(["b"]))
    assert (queues.active, store.reads) == (["a", "b"], 1)
    assert queues.unsure_seconds() > 0.0
    # The second notification in a row puts nothing off: "c" is found.
    asyncio.run(queues.refresh(["b"]))
    assert (queues.active, store.reads, queues.unsure_seconds()) == (["b", "c"], 2, 0.0)


def test_of_very_many_queues_each_has_its_turn() -> None:
    store = Directory(*(f"q{number:04}" for number in range(2 * FIND_LIMIT + 10)))
    queues = ServedQueues(store, ("*",), lambda: 0.0)
    seen: set[str] = set()
    for _ in range(3):
        queues.look_again()
        asyncio.run(queues.refresh())
        seen.update(queues.active)
        assert len(queues.active) <= FIND_LIMIT
    assert seen == set(store.names)


class EverNewQueues(Directory):
    """Each read finds two queues: one that stays, and one that was not there before."""

    async def ready_queues(self, after: str, limit: int) -> list[str]:
        self.reads += 1
        return ["stays", f"q{self.reads}"]

    async def claim(self, request: ClaimRequest, cursors: ClaimCursors) -> list[Attempt]:
        cursors[request.demands[0].queue].reset()
        return []

    async def set_aside_ready(self, queue: str) -> list[SetAside]:
        raise NotImplementedError

    async def declare_limits(self, limits: Mapping[str, Limit]) -> None:
        raise NotImplementedError


def test_queues_that_are_long_empty_leave_nothing_behind_in_a_claimer() -> None:
    """Names of queues may be many and short-lived: one for each batch, or each customer."""
    store = EverNewQueues()

    async def claim_for_hours() -> Claimer:
        claimer = claimer_without_jobs(store, ("*",))
        task = asyncio.create_task(claimer.run())
        await asyncio.sleep(24 * FORGET_SECONDS)
        task.cancel()
        return claimer

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(VirtualClock())) as runner:
        claimer = runner.run(claim_for_hours())
    known = claimer._cursors.keys()
    assert known == claimer._fairness._passes.keys() == claimer._fairness.weights.keys()
    assert "stays" in known
    assert len(known) < store.reads / 10


def test_an_error_of_the_store_is_raised_and_nothing_counts_as_idle() -> None:
    store = Directory()
    queues = ServedQueues(store, ("*",), lambda: 0.0)
    asyncio.run(queues.refresh())
    assert queues.active == []
    store.is_away = True
    queues.look_again()
    with pytest.raises(StoreUnavailable):
        asyncio.run(queues.refresh())
    assert queues.active == [DEFAULT_QUEUE]
    assert queues.unsure_seconds() == FIND_SECONDS


def test_until_idle_ends_after_the_jobs_of_every_queue(virtual: VirtualApp) -> None:
    log: list[str] = []
    task = task_of_a_second(virtual, log)

    async def scenario() -> None:
        for queue in ("a", "default", "z"):
            task.using(queue=queue).enqueue(queue)
        async with virtual.working(until_idle=True):
            await virtual.until(lambda: len(log) == 3, 60.0)

    virtual.run(scenario())
    assert sorted(log) == ["a", "default", "z"]
