"""Retries of workflows whose caller dies between two of their transactions."""

from __future__ import annotations

import pytest

from freehold.model.flow import FlowState
from freehold.model.outcome import OutcomeKind
from freehold.operator import Operator
from freehold.store.statements import Verb
from freehold.store.verbs.flow_actions import retry_flow
from tests.store_contract.flows import flow_of, settle
from tests.store_contract.test_workflows import ANN, claimed, group, node, states, workflow
from tests.stores import StoreUnderTest


def _cut(verb: Verb[int], count: int) -> Verb[bool]:
    """Its caller dies after so many transactions. False: it has fewer."""
    try:
        group = next(verb)
        for _ in range(count):
            group = verb.send((yield group))
    except StopIteration:
        return False
    verb.close()
    return True


@pytest.mark.requirement("N12")
def test_a_retry_that_was_cut_off_never_leaves_jobs_waiting_unseen(store: StoreUnderTest) -> None:
    """They wait for sources, and their node does not: only another retry makes them go on."""
    flow = workflow(store, node(1), group(2, 2, 1))
    store.end(claimed(store)["t1"], OutcomeKind.FAIL)
    assert states(store, flow) == ["failed", "canceled"]
    seen, count = set(), 3
    while store.store.run(_cut(retry_flow(flow, ANN), count)):
        count += 1
        settle(store)
        waiting = store.sql("select count(*) from {s}job where stage = {pending}") != [(0,)]
        waits = store.store.flow_nodes(flow)[1].waits
        found = [each.text for each in Operator(store.store).findings() if each.check == "flows"]
        text = f"a retry of workflow {flow} (w) was cut off: jobs of it wait for nothing"
        assert found == ([text] if waiting and not waits else [])
        seen.add((waiting, waits))
        store.store.cancel_flow(flow, ANN)
        settle(store)
    assert (True, False) in seen
    assert list(claimed(store)) == ["t1"]


def test_a_canceled_workflow_whose_retry_was_cut_off_at_its_start_has_failed(
    store: StoreUnderTest,
) -> None:
    flow = workflow(store, node(1))
    store.store.cancel_flow(flow, ANN)
    settle(store)
    store.store.run(_cut(retry_flow(flow, ANN), 3))
    settle(store)
    now = flow_of(store, flow)
    assert (now.state, now.canceled_at) == (FlowState.FAILED, None)
    assert store.store.retry_flow(flow, ANN) == 1


@pytest.mark.parametrize("count", range(3, 17, 2))
def test_a_retry_of_a_canceled_workflow_that_was_cut_off_is_repeated(
    store: StoreUnderTest, count: int
) -> None:
    flow = workflow(store, node(1), group(2, 2, 1), group(3, 0, 1), node(4, 2, 3))
    store.store.cancel_flow(flow, ANN)
    settle(store)
    store.store.run(_cut(retry_flow(flow, ANN), count))
    settle(store)
    store.store.retry_flow(flow, ANN)
    for _ in range(3):
        settle(store)
        for each in store.claim():
            store.end(each, OutcomeKind.SUCCESS)
    settle(store)
    assert flow_of(store, flow).state is FlowState.SUCCEEDED
