"""Shortcuts for tests of flows."""

from __future__ import annotations

from typing import Any, TypeVar

from freehold.model.flow import Counts, Flow, FlowKind, Moment, NewFlow
from freehold.model.job import NewJob
from freehold.store.statements import Verb
from freehold.store.verbs.act import advance_flows
from tests.stores import StoreUnderTest

T = TypeVar("T")


def batch_of(
    store: StoreUnderTest, *jobs: NewJob, sealed: bool = True, name: str = "b", **callbacks: NewJob
) -> int:
    """Stores a batch. Callbacks by moment: success=, failure=, end=."""
    new = NewFlow(
        kind=FlowKind.BATCH,
        name=name,
        sealed=sealed,
        callbacks={Moment(moment): job for moment, job in callbacks.items()},
    )
    return store.store.create_batch(new, jobs, within=False)[0]


def members(count: int, **fields: Any) -> list[NewJob]:
    return [NewJob(**{"task": "t", **fields}) for _ in range(count)]


def flow_of(store: StoreUnderTest, flow: int) -> Flow:
    return store.store.read_flows([flow])[flow]


def settle(store: StoreUnderTest) -> int:
    """What sweeps do, until nothing is left. Returns how many jobs became ready."""
    jobs = 0
    while store.store.sweep_check(()).flows:
        jobs += store.store.advance_flows().jobs
    return jobs


def swept(verb: Verb[T]) -> Verb[T]:
    """A verb with a sweep after each of its transactions."""
    try:
        group = next(verb)
        while True:
            answers = yield group
            yield from advance_flows()
            group = verb.send(answers)
    except StopIteration as end:
        value: T = end.value
        return value


def counts_of(store: StoreUnderTest, flow: int) -> tuple[int, int, int, int]:
    """Total, succeeded, failed, canceled, after all ends are counted."""
    settle(store)
    counts = flow_of(store, flow).counts
    assert counts == recount(store, flow)
    return counts.total, counts.succeeded, counts.failed, counts.canceled


def recount(store: StoreUnderTest, flow: int) -> Counts:
    """From the members themselves. Deleted ones are not found, and have to be added."""
    found: dict[str, int] = {}
    after: int | None = 0
    while after is not None:
        page = store.store.flow_members(flow, after, 50)
        for job in page.jobs:
            found[job.state] = found.get(job.state, 0) + 1
        after = page.next
    total = flow_of(store, flow).counts.total
    deleted = total - sum(found.values())
    return Counts(
        total,
        found.get("succeeded", 0),
        found.get("failed", 0),
        found.get("canceled", 0) + deleted,
    )
