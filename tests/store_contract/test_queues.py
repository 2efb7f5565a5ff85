"""Queues: paused, resumed, paused until a time; and what can be seen of them."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from freehold.model.explain import PauseInfo
from freehold.model.limit import NO_LIMIT, Limit
from freehold.model.outcome import OutcomeKind
from freehold.store.types import ClaimRequest, QueueDemand
from tests.stores import LEASE_SECONDS, StoreUnderTest, key_of


@pytest.mark.requirement("S1.1")
def test_nothing_of_a_paused_queue_is_claimed(store: StoreUnderTest) -> None:
    store.add(queue="a")
    other = store.add(queue="b")
    store.store.pause_queue("a", "ann", "deploy", None)
    demands = (QueueDemand("a", 5), QueueDemand("b", 5))
    attempts = store.store.claim(
        ClaimRequest(owner="w1", lease_seconds=LEASE_SECONDS, demands=demands)
    )
    assert [attempt.job_id for attempt in attempts] == [other]


@pytest.mark.requirement("S1.1")
def test_a_resumed_queue_gives_its_jobs_again(store: StoreUnderTest) -> None:
    job_id = store.add()
    store.store.pause_queue("default", "ann", None, None)
    assert store.store.resume_queue("default") is True
    assert store.store.resume_queue("default") is False
    assert store.store.resume_queue("never heard of") is False
    assert store.claim_one().job_id == job_id


@pytest.mark.parametrize(("what", "name"), [("queue", "default"), ("queue", "*"), ("lane", "lane")])
def test_resuming_wakes_workers_that_would_sleep_for_seconds(
    store: StoreUnderTest, what: str, name: str
) -> None:
    getattr(store.store, f"pause_{what}")(name, "ann", None, None)
    store.add(target="lane")
    assert store.claim() == []

    async def first_topic() -> str | None:
        received: asyncio.Queue[str | None] = asyncio.Queue()
        listening = asyncio.create_task(store.database.listen(received.put_nowait))
        async with asyncio.timeout(120):
            assert await received.get() == ""  # the listener is connected
            await asyncio.to_thread(getattr(store.store, f"resume_{what}"), name)
            topic = await received.get()
        listening.cancel()
        await asyncio.wait([listening])
        return topic

    assert asyncio.run(first_topic()) == ("" if store.kind == "sqlite" else "+default")


@pytest.mark.requirement("S1.1", "P11")
def test_a_pause_until_a_time_ends_by_itself(store: StoreUnderTest) -> None:
    job_id = store.add()
    until = store.now() + timedelta(seconds=60)
    store.store.pause_queue("default", "ann", None, until)
    store.advance(60.0 - 0.000001)
    assert store.claim() == []
    store.advance(0.000001)
    assert not store.store.queues()[0].paused
    assert store.claim_one().job_id == job_id
    assert store.store.resume_queue("default") is False


@pytest.mark.requirement("S1.1")
def test_a_later_pause_replaces_the_earlier_one(store: StoreUnderTest) -> None:
    store.store.pause_queue("default", "ann", "one", store.now() + timedelta(seconds=60))
    store.store.pause_queue("default", "bob", None, None)
    store.advance(120.0)
    queue = store.store.queues()[0]
    assert (queue.paused, queue.paused_by, queue.pause_reason) == (True, "bob", None)
    assert queue.paused_until is None


@pytest.mark.requirement("S0.7")
def test_a_pause_does_not_touch_running_jobs(store: StoreUnderTest) -> None:
    store.add()
    store.add()
    done, crashed = store.claim()
    store.store.pause_queue("default", "ann", None, None)
    assert store.store.renew("w1", [key_of(done)], LEASE_SECONDS).lost == ()
    assert store.end(done, OutcomeKind.SUCCESS)
    store.advance(LEASE_SECONDS)
    assert [each.attempt for each in store.store.recover(10, 0.0)] == [crashed]


@pytest.mark.requirement("P12")
def test_a_paused_queue_has_no_depth(store: StoreUnderTest) -> None:
    """Or a manager would start workers that find nothing to do."""
    store.add(queue="a")
    store.add(queue="b")
    store.store.pause_queue("a", "ann", None, store.now() + timedelta(seconds=60))
    assert store.store.depth(["a", "b"]) == 1
    store.advance(60.0)
    assert store.store.depth(["a", "b"]) == 2


def test_queues_show_their_jobs(store: StoreUnderTest) -> None:
    created_at = store.now()
    for queue in ("b", "a", "a", "a"):
        store.add(queue=queue)
    store.advance(3.0)
    store.claim(queue="a", count=1)
    store.store.pause_queue("c", "ann", "why", None)
    a, b, c = store.store.queues()
    assert (a.name, a.ready, a.leased, a.oldest_ready_at) == ("a", 2, 1, created_at)
    assert (b.name, b.ready, b.leased, b.paused) == ("b", 1, 0, False)
    assert (c.name, c.ready, c.paused_by, c.pause_reason) == ("c", 0, "ann", "why")
    assert (c.paused_at, c.oldest_ready_at) == (store.now(), None)


def test_a_queue_of_delayed_jobs_and_followers_is_listed(store: StoreUnderTest) -> None:
    for queue in ("b", "c", "c"):
        store.add(queue=queue, delay_seconds=3600.0)
    for _ in range(3):
        store.add(queue="a", target="lane")
    store.claim(queue="a")
    found = [(q.name, q.ready, q.leased, q.not_ready) for q in store.store.queues()]
    assert found == [("a", 0, 1, 2), ("b", 0, 0, 1), ("c", 0, 0, 2)]


def test_a_queue_without_jobs_and_settings_is_not_listed(store: StoreUnderTest) -> None:
    """A name that was mistyped once must not stay in the list for ever."""
    for name in ("typo", "ended"):
        store.store.pause_queue(name, "ann", None, store.now() + timedelta(seconds=60))
    store.store.set_weight("heavy", 5.0)
    store.store.set_queue_limit("narrow", Limit(1))
    assert [q.name for q in store.store.queues()] == ["ended", "heavy", "narrow", "typo"]
    store.store.resume_queue("typo")
    store.advance(60.0)
    assert [q.name for q in store.store.queues()] == ["heavy", "narrow"]
    store.store.set_weight("heavy", 1.0)
    store.store.set_queue_limit("narrow", NO_LIMIT)
    assert store.store.queues() == []


def test_a_list_counts_the_jobs_of_each_queue_up_to_its_bound(store: StoreUnderTest) -> None:
    for _ in range(4):
        store.add(queue="a")
        store.add(queue="a", delay_seconds=60.0)
    store.add(queue="b")
    a, b = store.store.queues(bound=3)
    assert (a.ready, a.not_ready, a.bound) == (3, 3, 3)
    assert (b.ready, b.not_ready, b.bound) == (1, 0, 3)


def test_one_queue_is_read_as_the_list_shows_it(store: StoreUnderTest) -> None:
    for queue in ("a", "b", "b"):
        store.add(queue=queue)
    store.add(queue="b", delay_seconds=60.0)
    store.claim(queue="b", count=1)
    store.store.pause_queue("b", "ann", "why", None)
    store.store.set_queue_limit("narrow", Limit(1))
    store.store.set_weight("heavy", 2.0)
    listed = store.store.queues()
    assert [store.store.queue(each.name) for each in listed] == listed
    assert store.store.queue("none") is None
    store.store.set_weight("heavy", 1.0)
    assert store.store.queue("heavy") is None


def test_ready_queues_are_those_with_jobs_to_claim(store: StoreUnderTest) -> None:
    for queue in ("d", "b", "a", "b", "c"):
        store.add(queue=queue)
    store.add(queue="later", delay_seconds=60.0)
    store.claim(queue="a")
    assert store.store.ready_queues("", 10) == ["b", "c", "d"]
    assert store.store.ready_queues("", 2) == ["b", "c"]
    assert store.store.ready_queues("c", 2) == ["d"]
    assert store.store.ready_queues("d", 2) == []
    until = store.now() + timedelta(seconds=60)
    store.store.pause_queue("c", "ann", None, until)
    assert store.store.ready_queues("", 2) == ["b", "d"]
    store.store.pause_queue("*", "ann", None, until)
    assert store.store.ready_queues("", 2) == []
    store.advance(60.0)
    store.store.make_ready(10)
    assert store.store.ready_queues("", 10) == ["b", "c", "d", "later"]


def test_the_pause_of_all_queues_is_read_while_it_is_in_force(store: StoreUnderTest) -> None:
    assert store.store.pause_of_all() is None
    store.store.pause_queue("default", "ann", None, None)
    assert store.store.pause_of_all() is None
    until = store.now() + timedelta(seconds=60)
    store.store.pause_queue("*", "ann", "night", until)
    assert store.store.pause_of_all() == PauseInfo(store.now(), "ann", "night", until)
    store.advance(60.0)
    assert store.store.pause_of_all() is None
    store.store.pause_queue("*", "bob", None, None)
    assert store.store.pause_of_all() == PauseInfo(store.now(), "bob")
    store.store.resume_queue("*")
    assert store.store.pause_of_all() is None


def test_a_job_that_waited_for_its_time_is_ready_since_then(store: StoreUnderTest) -> None:
    created_at = store.now()
    store.add(delay_seconds=3600.0)
    store.advance(3700.0)
    assert store.store.make_ready(10) == 1
    assert store.store.queues()[0].oldest_ready_at == created_at + timedelta(seconds=3600)
    store.add(queue="past", run_at=created_at - timedelta(days=1))
    assert store.store.queues()[1].oldest_ready_at == store.now()
