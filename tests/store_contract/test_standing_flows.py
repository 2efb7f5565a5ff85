"""Flows with something due that no worker does, or that the database refuses."""

from __future__ import annotations

import pytest

from freehold.model.audit import Author
from freehold.model.findings import STANDING_SECONDS
from freehold.model.flow import FlowKind, FlowState, NewFlow, NewNode
from freehold.model.job import NewJob
from freehold.model.outcome import OutcomeKind
from freehold.operator import Operator
from freehold.store.verbs import act
from freehold.store.verbs.flow_actions import cancel_flow
from tests.broken_rows import cancels_refused
from tests.store_contract.flows import batch_of, flow_of, members, settle
from tests.stores import StoreUnderTest


def test_flows_that_stand_still_are_a_finding(store: StoreUnderTest) -> None:
    nodes = [
        NewNode(number=1, name="a", job=NewJob(task="a")),
        NewNode(number=2, name="b", job=NewJob(task="b"), sources=((1, ""),)),
    ]
    new = NewFlow(kind=FlowKind.WORKFLOW, name="w")
    workflow = store.store.create_workflow(new, nodes, within=False).id
    closed = batch_of(store, *members(1), end=NewJob(task="after"))
    settle(store)
    for attempt in store.claim():
        store.end(attempt, OutcomeKind.FAIL)
    canceled = batch_of(store, *members(1))
    store.store.run(cancel_flow(canceled, Author("ann", "test")))
    batch_of(store, *members(1))
    store.store.fold_flows([workflow, closed])  # and nothing acts upon them
    standing = [workflow, closed, canceled]
    store.advance(STANDING_SECONDS + 1)
    assert [each.id for each in store.store.standing_flows(STANDING_SECONDS, 10)] == standing
    found = Operator(store.store).findings()
    texts = [each.text for each in found if each.check == "standing flows"]
    assert [int(text.split()[1]) for text in texts] == standing
    settle(store)
    assert not store.store.standing_flows(0.0, 10)


def test_flows_that_the_database_refuses_do_not_hold_up_younger_ones(
    store: StoreUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even as many of them as one call looks at."""
    monkeypatch.setattr(act, "_FLOWS", 2)
    refused = [canceled_batch(store, "refused") for _ in range(4)]
    younger = canceled_batch(store, "default")
    with cancels_refused(store, "refused"):
        advanced = store.store.advance_flows()
        assert store.store.advance_flows().stands_still, "a sweep keeps its pace"
    assert len(advanced.problems) == len(refused)
    assert flow_of(store, younger).state is FlowState.CANCELED
    assert {flow_of(store, flow).state for flow in refused} == {FlowState.OPEN}
    settle(store)
    assert {flow_of(store, flow).state for flow in refused} == {FlowState.CANCELED}


def canceled_batch(store: StoreUnderTest, queue: str) -> int:
    batch = batch_of(store, *members(1, queue=queue))
    store.store.run(cancel_flow(batch, Author("ann", "test")))
    return batch
