"""Awaited verbs return the same results as blocking ones."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from freehold.errors import IllegalTransition, UniqueKeyTaken
from freehold.model.job import Attempt, NewJob, StopRequest
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.types import AttemptEnd, ClaimRequest, JobFilter, QueueDemand
from tests.stores import LEASE_SECONDS, StoreUnderTest, is_found, key_of

T = TypeVar("T")


def awaiting(store: StoreUnderTest, life: Coroutine[Any, Any, T]) -> T:
    """In an event loop of its own; its connections end with it."""

    async def run() -> T:
        try:
            return await life
        finally:
            if store.kind == "postgres":  # a database in memory would end with its connection
                await store.database.aclose()

    return asyncio.run(run())


async def claim(store: StoreUnderTest, owner: str = "w1") -> list[Attempt]:
    demands = (QueueDemand("default", 10),)
    return await store.awaited.claim(
        ClaimRequest(owner=owner, lease_seconds=LEASE_SECONDS, demands=demands)
    )


@pytest.mark.requirement("S3.7")
def test_the_whole_life_of_a_job_can_be_awaited(store: StoreUnderTest) -> None:
    async def life() -> int:
        job = (await store.awaited.enqueue([NewJob(task="t", target="lane")]))[0]
        (attempt,) = await claim(store)
        assert await store.awaited.mark_running("w1", [key_of(attempt)]) == ()
        await store.awaited.operate(OperatorVerb.CANCEL, [job.id], "ann", None)
        assert await store.awaited.stop_requests("w1") == {key_of(attempt): StopRequest.CANCEL}
        renewed = await store.awaited.renew("w1", [key_of(attempt)], LEASE_SECONDS)
        assert renewed.held == {job.id: StopRequest.CANCEL}
        ended = AttemptEnd(attempt, Outcome(kind=OutcomeKind.SUCCESS, result=b"[1]"))
        assert (await store.awaited.finish("w1", [ended])).lost == ()
        assert (await store.awaited.finish("w1", [ended])).lost == (job.id,)
        return job.id

    report = store.job(awaiting(store, life())).report
    assert report is not None
    assert (report.state, report.result) == ("succeeded", [1])


@pytest.mark.requirement("S3.7", "S0.7")
def test_recovery_can_be_awaited(store: StoreUnderTest) -> None:
    async def life() -> None:
        await store.awaited.enqueue([NewJob(task="t")])
        (attempt,) = await claim(store)
        store.advance(LEASE_SECONDS)
        assert await claim(store, "w2") == []
        recovered = await store.awaited.recover(10, 0.0)
        assert [each.attempt for each in recovered] == [attempt]
        assert (await store.awaited.give_back("w1", [attempt])).lost == (attempt.job_id,)

    awaiting(store, life())


@pytest.mark.requirement("S3.7", "S0.1", "P5")
def test_refusals_can_be_awaited(store: StoreUnderTest) -> None:
    async def life() -> None:
        first = (await store.awaited.enqueue([NewJob(task="t", unique_key="k")]))[0]
        with pytest.raises(IllegalTransition):
            await store.awaited.operate(OperatorVerb.RETRY, [first.id], "ann", None)
        (attempt,) = await claim(store)
        await store.awaited.finish("w1", [AttemptEnd(attempt, Outcome(kind=OutcomeKind.FAIL))])
        second = (await store.awaited.enqueue([NewJob(task="t", unique_key="k")]))[0]
        (again,) = await store.awaited.enqueue([NewJob(task="t", unique_key="k")])
        assert is_found(again, second)
        with pytest.raises(UniqueKeyTaken):
            await store.awaited.operate(OperatorVerb.RETRY, [first.id], "ann", None)

    awaiting(store, life())


@pytest.mark.requirement("S3.7")
def test_both_faces_read_the_same(store: StoreUnderTest) -> None:
    store.add(delay_seconds=5.0)
    job_id = store.add(target="lane")
    store.claim_one()
    store.store.operate(OperatorVerb.PAUSE, [job_id], "ann", None)

    async def life() -> list[object]:
        face = store.awaited
        return [
            await face.read([job_id]),
            await face.events(job_id),
            await face.page(JobFilter()),
            await face.depth(["default"]),
            await face.counts(),
            await face.has_live_jobs(),
            await face.queues(),
            await face.sweep_check(()),
            await face.now(),
        ]

    face = store.store
    blocking = [
        face.read([job_id]),
        face.events(job_id),
        face.page(JobFilter()),
        face.depth(["default"]),
        face.counts(),
        face.has_live_jobs(),
        face.queues(),
        face.sweep_check(()),
        face.now(),
    ]
    assert awaiting(store, life()) == blocking


@pytest.mark.requirement("S0.2", "S1.4")
def test_claimers_of_one_loop_never_share_a_job(store: StoreUnderTest) -> None:
    jobs = [store.add() for _ in range(40)]

    async def life() -> list[list[Attempt]]:
        return await asyncio.gather(*(claim(store, f"w{n}") for n in range(4)))

    won = [attempt.job_id for part in awaiting(store, life()) for attempt in part]
    assert sorted(won) == jobs
