"""Keys: one live job per unique key; an enqueue repeated under its key makes no second job."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from freehold.errors import UniqueKeyTaken
from freehold.model.job import Enqueued, NewJob
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from tests.stores import StoreUnderTest, is_found

DAY = 24 * 3600.0
CALLERS = 4


def put(store: StoreUnderTest, **fields: Any) -> Enqueued:
    return store.store.enqueue([NewJob(task="t", **fields)])[0]


def finish_one(store: StoreUnderTest, kind: OutcomeKind = OutcomeKind.SUCCESS) -> int:
    attempt = store.claim_one()
    assert store.end(attempt, kind)
    return attempt.job_id


# -- unique keys -----------------------------------------------------------------------------


@pytest.mark.requirement("P9")
@pytest.mark.parametrize("state", ["queued", "scheduled", "pending", "leased", "paused", "backoff"])
def test_a_live_job_keeps_a_second_one_of_its_key_out(store: StoreUnderTest, state: str) -> None:
    waits: dict[str, dict[str, Any]] = {
        "scheduled": {"delay_seconds": 60.0},
        "pending": {"pending": True},
    }
    first = put(store, unique_key="k", **waits.get(state, {}))
    if state in ("leased", "paused", "backoff"):
        attempt = store.claim_one()
        if state != "leased":
            kind = OutcomeKind.PAUSE if state == "paused" else OutcomeKind.ERROR
            assert store.end(attempt, kind)
    assert is_found(put(store, unique_key="k"), first)
    assert store.sql("select count(*) from {s}job") == [(1,)]


@pytest.mark.requirement("P9")
@pytest.mark.parametrize("kind", [OutcomeKind.SUCCESS, OutcomeKind.FAIL, OutcomeKind.CANCEL])
@pytest.mark.parametrize("target", [None, "lane"])
def test_the_key_is_free_when_its_job_has_ended(
    store: StoreUnderTest, kind: OutcomeKind, target: str | None
) -> None:
    """Also where a failed job still blocks its lane."""
    first = put(store, unique_key="k", target=target)
    finish_one(store, kind)
    second = put(store, unique_key="k")
    assert second.created
    assert second.id != first.id


@pytest.mark.requirement("P9")
def test_twins_of_one_call_are_one_job(store: StoreUnderTest) -> None:
    answers = store.store.enqueue([NewJob(task="t", unique_key="k")] * 3)
    assert [answer.created for answer in answers] == [True, False, False]
    assert len({answer.id for answer in answers}) == 1


@pytest.mark.requirement("P9", "S0.18")
@pytest.mark.parametrize("key", ["unique_key", "idempotency_key"])
def test_callers_at_once_make_one_job(store: StoreUnderTest, key: str) -> None:
    barrier = Barrier(CALLERS)

    def call(_: int) -> Enqueued:
        barrier.wait()
        return put(store, **{key: "k"})

    for _ in range(5):
        with ThreadPoolExecutor(CALLERS) as pool:
            answers = list(pool.map(call, range(CALLERS)))
        assert sorted(answer.created for answer in answers) == [False] * (CALLERS - 1) + [True]
        assert len({answer.id for answer in answers}) == 1
        store.sql("delete from {s}job")
        store.sql("delete from {s}idempotency")


@pytest.mark.requirement("P5", "P9")
@pytest.mark.parametrize("verb", [OperatorVerb.RESUME, OperatorVerb.RETRY])
@pytest.mark.parametrize("target", [None, "lane"])
def test_a_finished_job_is_not_requeued_while_its_key_is_taken(
    store: StoreUnderTest, verb: OperatorVerb, target: str | None
) -> None:
    first = put(store, unique_key="k", target=target)
    finish_one(store, OutcomeKind.FAIL)
    holder = put(store, unique_key="k", queue="other")
    before = store.everything()
    with pytest.raises(UniqueKeyTaken, match=str(holder.id)) as refusal:
        store.store.operate(verb, [first.id], "ann", None)
    assert refusal.value.holder == holder.id
    assert store.everything() == before
    store.store.operate(OperatorVerb.CANCEL, [holder.id], "ann", None)
    assert store.store.operate(verb, [first.id], "ann", None)[0].status == "done"


@pytest.mark.requirement("P5", "P9")
def test_a_job_that_came_back_holds_its_key_again(store: StoreUnderTest) -> None:
    first = put(store, unique_key="k")
    finish_one(store)
    store.store.operate(OperatorVerb.RETRY, [first.id], "ann", None)
    assert is_found(put(store, unique_key="k"), first)


# -- idempotency keys ------------------------------------------------------------------------


@pytest.mark.requirement("P9", "S0.18")
def test_a_repeated_enqueue_makes_no_second_job_even_after_the_end(store: StoreUnderTest) -> None:
    first = put(store, idempotency_key="k")
    assert is_found(put(store, idempotency_key="k"), first)
    finish_one(store)
    assert is_found(put(store, idempotency_key="k"), first)
    assert store.claim() == []


@pytest.mark.requirement("P9")
def test_a_key_is_remembered_for_a_day_and_no_longer(store: StoreUnderTest) -> None:
    first = put(store, idempotency_key="k")
    finish_one(store)
    store.advance(DAY - 0.000001)
    assert is_found(put(store, idempotency_key="k"), first)
    store.advance(0.000001)
    second = put(store, idempotency_key="k")
    assert second.created
    assert is_found(put(store, idempotency_key="k"), second)


@pytest.mark.requirement("P9")
def test_a_key_is_remembered_for_the_requested_time(store: StoreUnderTest) -> None:
    put(store, idempotency_key="k", idempotency_seconds=60.0)
    finish_one(store)
    store.advance(60.0)
    assert put(store, idempotency_key="k").created


@pytest.mark.requirement("P9")
def test_a_key_is_remembered_beyond_its_time_while_its_job_is_live(store: StoreUnderTest) -> None:
    first = put(store, idempotency_key="k", delay_seconds=10 * DAY)
    store.advance(2 * DAY)
    assert is_found(put(store, idempotency_key="k"), first)


@pytest.mark.requirement("P9")
def test_one_key_in_one_call_makes_one_job(store: StoreUnderTest) -> None:
    answers = store.store.enqueue([NewJob(task="t", idempotency_key="k")] * 3)
    assert [answer.created for answer in answers] == [True, False, False]
    assert len({answer.id for answer in answers}) == 1


@pytest.mark.requirement("P9", "S0.18")
@pytest.mark.parametrize("forgotten_before", [False, True])
def test_the_answer_there_was_one_already_is_remembered_too(
    store: StoreUnderTest, forgotten_before: bool
) -> None:
    """A repetition gets the first answer, even if the unique key has become free meanwhile."""
    if forgotten_before:  # the key was used for something else, long ago
        put(store, idempotency_key="call")
        finish_one(store)
        store.advance(2 * DAY)
    holder = put(store, unique_key="k")
    assert is_found(put(store, unique_key="k", idempotency_key="call"), holder)
    finish_one(store)
    assert is_found(put(store, unique_key="k", idempotency_key="call"), holder)


@pytest.mark.requirement("P9")
def test_of_both_keys_the_remembered_job_comes_first(store: StoreUnderTest) -> None:
    first = put(store, idempotency_key="call", unique_key="k")
    finish_one(store)
    second = put(store, unique_key="k")
    assert second.created
    assert is_found(put(store, idempotency_key="call", unique_key="k"), first)
