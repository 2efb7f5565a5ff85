"""Signals: stored once, delivered to jobs that wait, and never missed."""

from __future__ import annotations

import pytest

from freehold.errors import BadInput
from freehold.model.job import Attempt
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.model.step import StepKind
from freehold.operator import Operator
from freehold.store.types import AwaitedSignal
from tests.stores import StoreUnderTest, key_of

DAY = 86400.0


def _send(store: StoreUnderTest, name: str, value: bytes = b"1", keep: float = DAY) -> bool:
    return store.store.send_signal(name, value, "ann", keep)


def _await(store: StoreUnderTest, attempt: Attempt, seconds: float = 60.0) -> AwaitedSignal:
    found = store.store.await_signal(attempt.owner, key_of(attempt), "paid", 1, seconds)
    assert found is not None
    return found


def _suspend(store: StoreUnderTest, attempt: Attempt, name: str = "paid") -> None:
    fields = {"delay_seconds": 60.0, "waits_for": f"signal/{name}"}
    assert store.end(attempt, OutcomeKind.SUSPEND, **fields)


@pytest.mark.requirement("N10")
def test_the_first_value_is_kept(store: StoreUnderTest) -> None:
    assert _send(store, "paid", b"1")
    assert not _send(store, "paid", b"2")
    store.add()
    assert _await(store, store.claim_one()).value == "1"


@pytest.mark.requirement("N10")
def test_a_signal_before_the_wait_is_found(store: StoreUnderTest) -> None:
    _send(store, "paid", b'{"cents": 5}')
    job_id = store.add()
    found = _await(store, store.claim_one())
    assert (found.kind, found.value) == (StepKind.SIGNAL, '{"cents": 5}')
    (step,) = store.store.read_steps(job_id)
    assert (step.kind, step.value) == (StepKind.SIGNAL, '{"cents": 5}')


@pytest.mark.requirement("N10")
@pytest.mark.parametrize("target", [None, "lane"])
def test_a_signal_during_the_wait_wakes_the_job(store: StoreUnderTest, target: str | None) -> None:
    job_id, other = store.add(target=target), store.add()
    attempts = {each.job_id: each for each in store.claim()}
    _suspend(store, attempts[job_id])
    _suspend(store, attempts[other], "shipped")
    assert store.store.deliver_signals(10) == 0
    _send(store, "paid")
    assert store.store.sweep_check(()).signals
    assert store.store.deliver_signals(10) == 1
    assert not store.store.sweep_check(()).signals
    again = store.claim_one()
    assert (again.job_id, again.number) == (job_id, 1)


@pytest.mark.requirement("N10")
@pytest.mark.parametrize("delivered", [False, True])
@pytest.mark.parametrize("target", [None, "lane"])
def test_a_signal_between_the_look_and_the_suspension_is_not_lost(
    store: StoreUnderTest, target: str | None, delivered: bool
) -> None:
    """Also if it was delivered meanwhile, when no job was suspended yet."""
    job_id = store.add(target=target)
    attempt = store.claim_one()
    assert _await(store, attempt).kind is StepKind.WAIT
    _send(store, "paid", b"7")
    if delivered:
        assert store.store.deliver_signals(10) == 0
    _suspend(store, attempt)
    again = store.claim_one()
    assert again.job_id == job_id
    assert _await(store, again) == AwaitedSignal(StepKind.SIGNAL, "7", 60.0)


def test_a_wait_ends_with_its_time(store: StoreUnderTest) -> None:
    store.add()
    attempt = store.claim_one(lease_seconds=1000.0)
    assert _await(store, attempt, 60.0) == AwaitedSignal(StepKind.WAIT, None, 60.0)
    store.advance(20.0)
    assert _await(store, attempt, 999.0) == AwaitedSignal(StepKind.WAIT, None, 40.0)
    store.advance(40.0)
    assert _await(store, attempt).kind is StepKind.TIMEOUT
    _send(store, "paid")
    assert _await(store, attempt).kind is StepKind.TIMEOUT  # once it was raised it stays


def test_a_signal_that_came_in_time_counts_more_than_the_timeout(store: StoreUnderTest) -> None:
    store.add()
    attempt = store.claim_one(lease_seconds=1000.0)
    _await(store, attempt, 60.0)
    _send(store, "paid")
    store.advance(100.0)
    assert _await(store, attempt).kind is StepKind.SIGNAL


def test_a_wait_without_time_looks_once(store: StoreUnderTest) -> None:
    store.add()
    assert _await(store, store.claim_one(), 0.0).kind is StepKind.TIMEOUT


@pytest.mark.requirement("N10")
def test_one_signal_wakes_all_that_wait_and_only_those(store: StoreUnderTest) -> None:
    jobs = [store.add() for _ in range(4)]
    first, second, third, backing_off = store.claim()
    _suspend(store, first)
    _suspend(store, second)
    assert store.end(third, OutcomeKind.SUSPEND, delay_seconds=60.0, waits_for="sleep/paid")
    assert store.end(backing_off, OutcomeKind.ERROR)
    _send(store, "paid")
    assert store.store.deliver_signals(10) == 2
    assert {each.job_id for each in store.claim()} == set(jobs[:2])


def test_a_paused_wait_finds_its_signal_when_it_is_resumed(store: StoreUnderTest) -> None:
    job_id = store.add()
    _suspend(store, store.claim_one())
    store.store.operate(OperatorVerb.PAUSE, [job_id], "ann", None)
    _send(store, "paid")
    assert store.store.deliver_signals(10) == 0
    store.store.operate(OperatorVerb.RESUME, [job_id], "ann", None)
    assert _await(store, store.claim_one()).kind is StepKind.SIGNAL


def test_an_expired_signal_is_none(store: StoreUnderTest) -> None:
    _send(store, "paid", b"1", keep=60.0)
    store.advance(60.0)
    store.add()
    attempt = store.claim_one()
    assert _await(store, attempt).kind is StepKind.WAIT
    assert _send(store, "paid", b"2")
    assert _await(store, attempt).value == "2"


def test_signals_that_are_kept_are_listed_by_name(store: StoreUnderTest) -> None:
    for name, keep in (("c", DAY), ("a", DAY), ("b", 60.0)):
        _send(store, name, keep=keep)
    operator = Operator(store.store)
    assert [each.name for each in operator.signals(limit=2)] == ["a", "b"]
    (last,) = operator.signals(after="b")
    assert (last.name, last.at, last.by, last.delivered) == ("c", store.now(), "ann", False)
    assert (last.expires_at - last.at).total_seconds() == DAY
    store.advance(60.0)
    store.store.deliver_signals(10)
    assert [(each.name, each.delivered) for each in operator.signals()] == [
        ("a", True),
        ("c", True),
    ]
    with pytest.raises(BadInput, match="a page has"):
        operator.signals(limit=0)


def test_retention_deletes_expired_signals(store: StoreUnderTest) -> None:
    _send(store, "short", keep=60.0)
    _send(store, "long", keep=2 * DAY)
    while store.store.apply_retention(30.0, 100):
        pass
    assert store.store.retention_is_due(30.0) is False
    store.advance(60.0)
    assert store.store.retention_is_due(30.0) is True
    while store.store.apply_retention(30.0, 100):
        pass
    assert store.store.retention_is_due(30.0) is False
    assert store.sql("select name from {s}signal") == [("long",)]
