"""Steps: stored once, under the lease, for as long as their job."""

from __future__ import annotations

import pytest

from freehold.model.job import Attempt
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.model.policy import Policy
from freehold.model.step import Step, StepKind
from freehold.store.types import NewStep
from tests.stores import StoreUnderTest, key_of


def _put(store: StoreUnderTest, attempt: Attempt, *steps: tuple[str, int, bytes | None]) -> None:
    new = [NewStep(key_of(attempt), name, number, value=value) for name, number, value in steps]
    assert store.store.put_steps(attempt.owner, new) == ()


def _values(store: StoreUnderTest, job_id: int) -> dict[str, str | None]:
    return {step.name: step.value for step in store.store.read_steps(job_id)}


@pytest.mark.requirement("N8")
def test_steps_are_read_in_the_order_of_their_numbers(store: StoreUnderTest) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    _put(store, attempt, ("zebra", 1, b'{"a": [1, "\xc3\xa4"]}'))
    store.advance(1.0)
    _put(store, attempt, ("b", 3, None), ("a", 2, b"null"))
    first, second, third = store.store.read_steps(job_id)
    at, token = store.now(), attempt.token
    assert (first.name, first.value) == ("zebra", '{"a": [1, "ä"]}')
    assert second == Step("a", 2, StepKind.RESULT, token, at, value="null")
    assert third == Step("b", 3, StepKind.RESULT, token, at)
    assert store.store.read_steps(job_id + 1) == []


@pytest.mark.requirement("N8")
def test_a_step_that_exists_keeps_its_first_value(store: StoreUnderTest) -> None:
    """Its write was repeated, because the answer to the first one was lost."""
    job_id = store.add()
    attempt = store.claim_one()
    _put(store, attempt, ("charge", 1, b"1"))
    before = store.everything()
    _put(store, attempt, ("charge", 1, b"2"))
    assert store.everything() == before
    assert _values(store, job_id) == {"charge": "1"}


@pytest.mark.requirement("N8")
def test_a_transaction_of_a_step_that_exists_is_refused(store: StoreUnderTest) -> None:
    """The answer to its first commit was lost: the rows of the handler must not be written again.
    Another step of the job is accepted, also after the first one has marked its policy."""
    job_id = store.add()
    attempt = store.claim_one()
    for name, number, is_new in (("a", 1, True), ("a", 1, False), ("b", 2, True)):
        step = NewStep(key_of(attempt), name, number)
        assert store.store.put_step_within(attempt.owner, step) is is_new
    assert list(_values(store, job_id)) == ["a", "b"]


def test_the_secret_mark_and_the_end_of_a_wait_are_stored(store: StoreUnderTest) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    step = NewStep(key_of(attempt), "token", 1, value=b'"x"', hidden=True, seconds=90.5)
    assert store.store.put_steps("w1", [step]) == ()
    store.advance(30.0)
    (found,) = store.store.read_steps(job_id)
    assert (found.hidden, found.left_seconds) == (True, 60.5)
    assert found.until is not None
    assert (found.until - store.now()).total_seconds() == 60.5
    assert "x" not in repr(found)


@pytest.mark.requirement("N8")
def test_one_stale_lease_does_not_cost_its_neighbours_their_steps(store: StoreUnderTest) -> None:
    gone, held = store.add(), store.add()
    attempts = {attempt.job_id: attempt for attempt in store.claim()}
    assert store.end(attempts[gone], OutcomeKind.SUCCESS)
    new = [NewStep(key_of(attempts[job_id]), "charge", 1, value=b"1") for job_id in (gone, held)]
    assert store.store.put_steps("w1", new) == (key_of(attempts[gone]),)
    assert (_values(store, gone), _values(store, held)) == ({}, {"charge": "1"})


def test_the_late_step_of_an_earlier_lease_is_refused_beside_one_of_the_present(
    store: StoreUnderTest,
) -> None:
    job_id = store.add()
    earlier = store.claim_one()
    assert store.end(earlier, OutcomeKind.SNOOZE)
    present = store.claim_one()
    new = [NewStep(key_of(each), str(each.token), 1) for each in (earlier, present)]
    assert store.store.put_steps("w1", new) == (key_of(earlier),)
    assert list(_values(store, job_id)) == [str(present.token)]


@pytest.mark.parametrize("policy", [Policy(), Policy(on_cancel="pause", notify_end=True)])
def test_a_claim_sees_whether_its_job_has_steps(store: StoreUnderTest, policy: Policy) -> None:
    store.add(policy=policy)
    attempt = store.claim_one()
    assert not attempt.policy.has_steps
    _put(store, attempt, ("charge", 1, b"1"))
    _put(store, attempt, ("ship", 2, b"2"))
    assert store.end(attempt, OutcomeKind.SNOOZE)
    again = store.claim_one().policy
    assert again.has_steps
    assert (again.on_cancel, again.notify_end) == (policy.on_cancel, policy.notify_end)


def test_a_policy_that_another_program_wrote_is_marked_too(store: StoreUnderTest) -> None:
    store.add()
    store.sql("update {s}job set policy = ' { } '")
    attempt = store.claim_one()
    _put(store, attempt, ("charge", 1, b"1"))
    assert store.end(attempt, OutcomeKind.SNOOZE)
    assert store.claim_one().policy.has_steps


@pytest.mark.requirement("N8")
def test_steps_survive_a_retry_the_end_and_a_retry_by_hand(store: StoreUnderTest) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    _put(store, attempt, ("charge", 1, b"1"))
    assert store.end(attempt, OutcomeKind.ERROR)
    store.advance(3600.0)
    store.store.make_ready(10)
    assert store.end(store.claim_one(), OutcomeKind.SUCCESS)
    assert _values(store, job_id) == {"charge": "1"}
    store.store.operate(OperatorVerb.RETRY, [job_id], "ann", None)
    assert store.claim_one().policy.has_steps
    assert _values(store, job_id) == {"charge": "1"}


def test_deleting_a_job_deletes_its_steps(store: StoreUnderTest) -> None:
    finished, waiting, held = store.add(), store.add(), store.add()
    for attempt in store.claim():
        _put(store, attempt, ("charge", 1, b"1"))
        if attempt.job_id != held:
            kind = OutcomeKind.SUCCESS if attempt.job_id == finished else OutcomeKind.SNOOZE
            assert store.end(attempt, kind)
    assert store.store.delete([finished, waiting, held]) == [finished, waiting]
    assert [len(_values(store, job_id)) for job_id in (finished, waiting, held)] == [0, 0, 1]


def _apply_retention(store: StoreUnderTest) -> None:
    while store.store.apply_retention(30.0, 1):
        pass


def test_old_steps_alone_make_retention_due(store: StoreUnderTest) -> None:
    """The history of their job has gone before, in a retention that was cut off."""
    job_id = store.add()
    attempt = store.claim_one()
    _put(store, attempt, ("charge", 1, b"1"))
    assert store.end(attempt, OutcomeKind.SUCCESS)
    _apply_retention(store)
    store.advance(2 * 86400.0)
    assert not store.store.retention_is_due(3.0)
    store.sql(f"delete from {{s}}history where id = {job_id}")
    assert store.store.retention_is_due(1.0)
    while store.store.apply_retention(1.0, 1):
        pass
    assert not store.store.retention_is_due(1.0)
    assert _values(store, job_id) == {}


def test_old_steps_of_kept_jobs_are_looked_at_once_a_day(store: StoreUnderTest) -> None:
    """And steps behind them are found, however small the windows are."""
    ids = [store.add() for _ in range(5)]
    for attempt in store.claim():
        _put(store, attempt, ("charge", 1, b"1"), ("ship", 2, b"2"))
        assert store.end(attempt, OutcomeKind.SNOOZE, delay_seconds=90 * 86400.0)
    store.advance(40 * 86400.0)
    assert store.store.retention_is_due(30.0)
    _apply_retention(store)
    assert not store.store.retention_is_due(30.0)
    store.sql(f"delete from {{s}}job where id = {ids[-1]}")  # as by the loss of a day of history
    assert not store.store.retention_is_due(30.0)
    store.advance(86400.0)
    assert store.store.retention_is_due(30.0)
    for window in (1, 2, 100):
        store.store.apply_retention(30.0, window)
    _apply_retention(store)
    assert not store.store.retention_is_due(30.0)
    assert [len(_values(store, job_id)) for job_id in ids] == [2, 2, 2, 2, 0]


def test_steps_are_kept_until_the_history_of_their_job_goes(store: StoreUnderTest) -> None:
    job_id, live = store.add(), store.add()
    for attempt in store.claim():
        _put(store, attempt, ("charge", 1, b"1"), ("ship", 2, b"2"))
        assert store.end(attempt, OutcomeKind.SNOOZE, delay_seconds=25 * 86400.0)
    store.advance(25 * 86400.0)
    store.store.make_ready(10)
    assert store.end(store.claim_one(), OutcomeKind.SUCCESS)
    store.advance(20 * 86400.0)  # the steps are older than 30 days, the end is not
    _apply_retention(store)
    assert len(_values(store, job_id)) == 2
    assert store.store.retention_is_due(30.0) is False
    store.advance(20 * 86400.0)
    assert store.store.retention_is_due(30.0) is True
    _apply_retention(store)
    assert store.store.retention_is_due(30.0) is False
    assert (len(_values(store, job_id)), len(_values(store, live))) == (0, 2)
