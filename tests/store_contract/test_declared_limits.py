"""Limits that the code of tasks declares: an operator's change outlives a deploy."""

from __future__ import annotations

from freehold.model.limit import NO_LIMIT, Limit, Rate
from freehold.model.outcome import OutcomeKind
from tests.stores import StoreUnderTest

KEY = "task:shop.send"


def limits(store: StoreUnderTest) -> dict[str, Limit]:
    return {rule.name: rule.limit for rule in store.store.key_limits()}


def test_a_declared_limit_holds_and_one_declared_again_changes_nothing(
    store: StoreUnderTest,
) -> None:
    jobs = [store.add(limit_key=KEY) for _ in range(4)]
    store.store.declare_limits({KEY: Limit(2), "task:other": Limit(1)})
    assert [attempt.job_id for attempt in store.claim()] == jobs[:2]
    before = store.everything()
    store.store.declare_limits({KEY: Limit(2), "task:other": Limit(1)})
    store.store.declare_limits({})
    assert store.everything() == before


def test_an_operators_change_stays_until_the_code_declares_another_limit(
    store: StoreUnderTest,
) -> None:
    store.store.declare_limits({KEY: Limit(2)})
    store.store.set_key_limit(KEY, Limit(7))
    store.store.declare_limits({KEY: Limit(2)})
    assert limits(store) == {KEY: Limit(7)}
    store.store.declare_limits({KEY: Limit(2, Rate(5, 60.0))})
    assert limits(store) == {KEY: Limit(2, Rate(5, 60.0))}


def test_a_limit_that_an_operator_set_before_the_code_declared_one_stays(
    store: StoreUnderTest,
) -> None:
    store.store.set_key_limit(KEY, Limit(7))
    store.store.declare_limits({KEY: Limit(2)})
    store.store.declare_limits({KEY: Limit(2)})
    assert limits(store) == {KEY: Limit(7)}
    store.store.declare_limits({KEY: Limit(3)})
    assert limits(store) == {KEY: Limit(3)}


def test_a_declared_limit_that_an_operator_removed_does_not_come_back(
    store: StoreUnderTest,
) -> None:
    store.store.declare_limits({KEY: Limit(1, Rate(1, 60.0))})
    jobs = [store.add(limit_key=KEY) for _ in range(4)]
    assert [attempt.job_id for attempt in store.claim()] == jobs[:1]
    store.store.set_key_limit(KEY, NO_LIMIT)
    store.store.declare_limits({KEY: Limit(1, Rate(1, 60.0))})
    assert limits(store) == {KEY: NO_LIMIT}
    assert store.store.key_use(KEY).limit == NO_LIMIT
    assert store.store.admit_limited(100) == 3
    rest = store.claim()
    assert [attempt.job_id for attempt in rest] == jobs[1:]
    assert all(store.end(attempt, OutcomeKind.SUCCESS) for attempt in rest)


def test_a_declared_limit_that_an_operator_removed_does_not_hide_the_limit_of_its_class(
    store: StoreUnderTest,
) -> None:
    store.store.declare_limits({KEY: Limit(1)})
    store.store.set_key_limit("task:*", Limit(2))
    store.store.set_key_limit(KEY, NO_LIMIT)
    jobs = [store.add(limit_key=KEY) for _ in range(4)]
    assert store.store.key_use(KEY).limit == Limit(2)
    assert [attempt.job_id for attempt in store.claim()] == jobs[:2]


def test_a_new_rate_forgets_the_starts_that_the_old_one_counted(store: StoreUnderTest) -> None:
    store.store.declare_limits({KEY: Limit(rate=Rate(1, 3600.0))})
    jobs = [store.add(limit_key=KEY) for _ in range(3)]
    assert [attempt.job_id for attempt in store.claim()] == jobs[:1]
    store.store.declare_limits({KEY: Limit(rate=Rate(2, 60.0))})
    store.store.admit_limited(100)
    assert [attempt.job_id for attempt in store.claim()] == jobs[1:]
