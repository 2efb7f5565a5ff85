"""The ends of jobs that callers wait for."""

from __future__ import annotations

import pytest

from freehold.model.job import ErrorInfo
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.policy import Policy
from freehold.model.state import State
from freehold.store.types import AttemptEnd
from tests.stores import StoreUnderTest

pytestmark = pytest.mark.requirement("N5")
ERROR = Outcome(kind=OutcomeKind.FAIL, error=ErrorInfo("builtins.ValueError", "no"), reason="no")


def test_each_kind_of_job_has_its_end(store: StoreUnderTest) -> None:
    good, bad = store.add(), store.add()
    attempts = {attempt.job_id: attempt for attempt in store.claim()}
    lane = store.add(target="printer")
    (in_lane,) = store.claim()
    live = store.add()
    success = Outcome(kind=OutcomeKind.SUCCESS, result=b'{"a":1}')
    ends = [
        AttemptEnd(attempts[good], success),
        AttemptEnd(attempts[bad], ERROR),
        AttemptEnd(in_lane, ERROR),
    ]
    assert not store.store.finish("w1", ends).lost
    found = store.store.read_ends([good, bad, lane, live, 10**12])
    assert found.keys() == {good, bad, lane, 10**12}
    assert found[10**12] is None
    states = {job_id: end.state for job_id, end in found.items() if end is not None}
    assert states == {good: State.SUCCEEDED, bad: State.FAILED, lane: State.FAILED}
    ended, failed, blocking = found[good], found[bad], found[lane]
    assert ended is not None
    assert ended.result is not None
    assert ended.result.replace(" ", "") == '{"a":1}'
    for each in (failed, blocking):
        assert each is not None
        assert each.error is not None
        assert (each.error.message, each.reason) == ("no", "no")


def test_no_ids_need_no_statement(store: StoreUnderTest) -> None:
    assert store.store.read_ends([]) == {}


def test_a_retried_job_has_not_ended(store: StoreUnderTest) -> None:
    job_id = store.add(policy=Policy(notify_end=True))
    (attempt,) = store.claim()
    store.store.finish("w1", [AttemptEnd(attempt, Outcome(kind=OutcomeKind.ERROR))])
    assert store.store.read_ends([job_id]) == {}


def test_the_mark_of_a_waiting_caller_is_stored_with_the_job(store: StoreUnderTest) -> None:
    store.add(policy=Policy(notify_end=True))
    store.add()
    marked, plain = store.claim()
    assert marked.policy.notify_end
    assert plain.policy_json is None


def test_a_result_does_not_show_in_the_repr_of_an_end(store: StoreUnderTest) -> None:
    job_id = store.add()
    (attempt,) = store.claim()
    success = Outcome(kind=OutcomeKind.SUCCESS, result=b'"hunter2"')
    store.store.finish("w1", [AttemptEnd(attempt, success)])
    assert "hunter2" not in repr(store.store.read_ends([job_id]))
