"""Flows with something due that no worker does, or that the database refuses."""

from __future__ import annotations

from freehold.model.audit import Author
from freehold.model.findings import STANDING_SECONDS
from freehold.model.flow import FlowKind, NewFlow, NewNode
from freehold.model.job import NewJob
from freehold.model.outcome import OutcomeKind
from freehold.operator import Operator
from freehold.store.verbs.flow_actions import cancel_flow
from tests.store_contract.flows import batch_of, members, settle
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
