"""Flows for tests of the command line, the API and the dashboard."""

from __future__ import annotations

from freehold.model.flow import FlowKind, NewFlow, NewNode, OnFailure
from freehold.model.job import Attempt, NewJob
from freehold.model.outcome import OutcomeKind
from tests.store_contract.flows import settle
from tests.stores import StoreUnderTest


def import_flow(store: StoreUnderTest, name: str = "nightly", key: str | None = None) -> int:
    """extract, then clean and a map of two jobs, then a report that holds if one of them fails."""
    nodes = (
        _node(1, "extract"),
        _node(2, "clean", 1),
        NewNode(number=3, name="load", jobs=(NewJob(task="load"),) * 2, sources=((1, ""),)),
        _node(4, "report", 2, 3, on_failure=OnFailure.HOLD),
    )
    new = NewFlow(kind=FlowKind.WORKFLOW, name=name, key=key)
    return store.store.create_workflow(new, nodes, within=False).id


def _node(
    number: int, name: str, *sources: int, on_failure: OnFailure = OnFailure.CANCEL
) -> NewNode:
    pairs = tuple((source, "") for source in sources)
    job = NewJob(task=name, args=b'{"secret": "swordfish"}')
    return NewNode(number=number, name=name, job=job, sources=pairs, on_failure=on_failure)


def end_all(store: StoreUnderTest, **ends: OutcomeKind) -> dict[str, Attempt]:
    """Run what is ready now, and fold. Tasks that are not named succeed."""
    settle(store)
    attempts = store.claim()
    for attempt in attempts:
        store.end(attempt, ends.get(attempt.task, OutcomeKind.SUCCESS))
    settle(store)
    return {attempt.task: attempt for attempt in attempts}


def held_flow(store: StoreUnderTest) -> int:
    """An import whose report holds, because clean has failed."""
    flow = import_flow(store)
    end_all(store)
    end_all(store, clean=OutcomeKind.FAIL)
    return flow
