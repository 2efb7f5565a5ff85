"""Gathering: step, flow and children in one fenced write; the wait is never missed."""

from __future__ import annotations

import pytest

from freehold.model.audit import Author
from freehold.model.flow import FlowState
from freehold.model.job import Attempt
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.model.state import State
from freehold.model.step import StepKind
from freehold.store.types import Gathered
from tests.store_contract.flows import flow_of, members, settle
from tests.stores import StoreUnderTest, key_of

ANN = Author("ann", "test")
DAY = 86400.0


def _gather(store: StoreUnderTest, attempt: Attempt, count: int = 2) -> Gathered:
    found = store.store.gather(attempt.owner, key_of(attempt), "pages", 1, members(count))
    assert found is not None
    return found


def _suspend(store: StoreUnderTest, attempt: Attempt, flow: int) -> None:
    fields = {"delay_seconds": DAY, "waits_for": f"gather/{flow}"}
    assert store.end(attempt, OutcomeKind.SUSPEND, **fields)


def _parent(store: StoreUnderTest, target: str | None = None) -> Attempt:
    store.add(target=target)
    return store.claim_one()


@pytest.mark.requirement("N9")
@pytest.mark.parametrize("target", [None, "lane"])
def test_a_job_is_woken_when_all_children_have_ended(
    store: StoreUnderTest, target: str | None
) -> None:
    parent = _parent(store, target)
    found = _gather(store, parent)
    _suspend(store, parent, found.flow)
    first, second = store.claim()
    assert [first.job_id, second.job_id] == list(found.jobs)
    store.end(first, OutcomeKind.SUCCESS, result=b"1")
    assert settle(store) == 0
    store.end(second, OutcomeKind.FAIL)
    assert settle(store) == 1
    again = store.claim_one()
    assert (again.job_id, again.number) == (parent.job_id, 1)
    ended = store.store.finish_gather(again.owner, key_of(again), "pages", found, False)
    assert ended is not None
    assert ended.ends is not None
    assert [each.end.state for each in ended.ends if each.end] == [State.SUCCEEDED, State.FAILED]
    (step,) = store.store.read_steps(parent.job_id)
    assert step.kind is StepKind.GATHERED


@pytest.mark.requirement("N9")
@pytest.mark.parametrize("folded", [False, True])
def test_children_that_end_before_the_suspension(store: StoreUnderTest, folded: bool) -> None:
    parent = _parent(store)
    found = _gather(store, parent)
    for child in store.claim():
        store.end(child, OutcomeKind.SUCCESS)
    if folded:
        settle(store)
    _suspend(store, parent, found.flow)
    settle(store)
    assert store.claim_one().job_id == parent.job_id


def test_a_repeated_call_finds_the_children(store: StoreUnderTest) -> None:
    parent = _parent(store)
    assert _gather(store, parent) == _gather(store, parent, 5)
    assert len(store.sql("select * from {s}job")) == 3
    assert len(store.store.flows(10)) == 1


@pytest.mark.requirement("N9")
@pytest.mark.parametrize("verb", ["cancel", "delete"])
def test_what_a_job_gathers_ends_with_it(store: StoreUnderTest, verb: str) -> None:
    parent = _parent(store)
    found = _gather(store, parent, 3)
    _suspend(store, parent, found.flow)
    if verb == "cancel":
        store.store.operate(OperatorVerb.CANCEL, [parent.job_id], "ann", None)
    else:
        store.store.delete([parent.job_id])
    settle(store)
    assert [store.state(child) for child in found.jobs] == ["canceled"] * 3
    assert flow_of(store, found.flow).state is FlowState.CANCELED


def test_children_of_a_job_that_fails_are_canceled(store: StoreUnderTest) -> None:
    """Its handler ran again early, and failed."""
    store.add(max_attempts=1)
    parent = store.claim_one()
    found = _gather(store, parent)
    _suspend(store, parent, found.flow)
    store.store.operate(OperatorVerb.PAUSE, [parent.job_id], "ann", None)
    store.store.operate(OperatorVerb.RESUME, [parent.job_id], "ann", None)
    again = next(each for each in store.claim() if each.job_id == parent.job_id)
    store.end(again, OutcomeKind.FAIL)
    settle(store)
    assert flow_of(store, found.flow).canceled_at is not None


def test_a_job_that_is_resumed_when_its_children_are_long_gone(store: StoreUnderTest) -> None:
    """Retention keeps the gather for it, and the children have no ends any more."""
    parent = _parent(store)
    found = _gather(store, parent)
    for child in store.claim():
        store.end(child, OutcomeKind.SUCCESS)
    _suspend(store, parent, found.flow)
    store.store.operate(OperatorVerb.PAUSE, [parent.job_id], "ann", None)
    settle(store)
    store.advance(40 * DAY)
    while store.store.apply_retention(30.0, 100):
        """Until nothing is left."""
    assert store.store.read(found.jobs) == {}
    assert flow_of(store, found.flow).state is FlowState.SUCCEEDED
    store.sql(f"delete from {{s}}flow where id = {found.flow}")  # as earlier versions did
    store.store.operate(OperatorVerb.RESUME, [parent.job_id], "ann", None)
    again = store.claim_one()
    ended = store.store.finish_gather(again.owner, key_of(again), "pages", found, False)
    assert ended is not None
    assert ended.ends is not None
    assert [each.end for each in ended.ends] == [None, None]
    store.end(again, OutcomeKind.SUCCESS)


def test_retention_deletes_the_gather_of_a_job_that_has_ended(store: StoreUnderTest) -> None:
    parent = _parent(store)
    found = _gather(store, parent)
    for child in store.claim():
        store.end(child, OutcomeKind.SUCCESS)
    store.end(parent, OutcomeKind.SUCCESS)
    settle(store)
    store.advance(40 * DAY)
    while store.store.apply_retention(30.0, 100):
        """Until nothing is left."""
    assert store.store.read_flows([found.flow]) == {}
