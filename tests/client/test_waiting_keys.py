"""Unique until the start, debounce and throttle from Python."""

from __future__ import annotations

from typing import Any

import pytest

from freehold import BadInput, Debounce, Freehold, Throttle, Unique
from tests.client.helpers import awaited, call_of, claimed, greet

pytestmark = pytest.mark.requirement("N4")


def test_one_waits_beside_one_that_runs(app: Freehold) -> None:
    task = app.task(greet).using(unique=Unique("ann", until="start"))
    first = task.enqueue("Ann")
    assert (first.created, first.replaced) == (True, False)
    again = task.enqueue("Bob")
    assert (again.id, again.created, again.replaced) == (first.id, False, False)
    claimed(app)
    assert task.enqueue("Eve").created


def test_until_the_end_is_a_unique_key(app: Freehold) -> None:
    task = app.task(greet).using(unique=Unique("ann"))
    first = task.enqueue("Ann")
    claimed(app)
    assert task.enqueue("Ann").id == first.id
    assert first.read().unique_key == "ann"


def test_the_latest_arguments_stay(app: Freehold) -> None:
    task = app.task(greet).using(unique=Unique("ann", until="start", replace=("args", "priority")))
    first = task.enqueue("Ann")
    again = task.using(priority=5).enqueue("Bob")
    assert (again.id, again.replaced) == (first.id, True)
    assert (first.read().priority, call_of(task, first.read())[1]["name"]) == (5, "Bob")


def test_a_debounce_waits_and_a_throttle_runs_at_once(app: Freehold) -> None:
    task = app.task(greet)
    later = task.using(debounce=Debounce("ann", seconds=30, at_most=300)).enqueue("Ann").read()
    assert (later.run_at - later.created_at).total_seconds() == 30
    now = task.using(throttle=Throttle("ann", seconds=60)).enqueue("Ann")
    assert [attempt.job_id for attempt in claimed(app)] == [now.id]


def test_coroutines_and_batches_have_the_same_options(app: Freehold) -> None:
    task = app.task(greet).using(debounce=Debounce("ann", seconds=30))

    async def produce() -> list[bool]:
        first = await task.aenqueue("Ann")
        many = await app.aenqueue_many([task.prepare("Bob"), task.prepare("Eve")])
        return [first.created, *(each.replaced for each in many)]

    assert awaited(app, produce()) == [True, True, True]


def test_the_time_of_creation_comes_with_the_handle(app: Freehold) -> None:
    task = app.task(greet)
    jobs = [task.enqueue("Ann"), *app.enqueue_many([task.prepare("Bob"), task.prepare("Eve")])]
    jobs += [task.using(unique_key="k", delay=9).enqueue("Ann") for _ in range(2)]
    assert [job.created_at for job in jobs] == [job.read().created_at for job in jobs]
    ended = task.using(idempotency_key="i").enqueue("Ann")
    ended.cancel()
    assert task.using(idempotency_key="i").enqueue("Ann").created_at is None, "it has ended"


@pytest.mark.parametrize(
    "options",
    [
        {"unique": Unique("k", "start")},
        {"debounce": Debounce("k", 1)},
        {"throttle": Throttle("k", 1)},
    ],
    ids=["unique", "debounce", "throttle"],
)
def test_a_pending_job_has_no_such_key(app: Freehold, options: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="a pending job of"):
        app.task(greet).using(**options).create("Ann")
