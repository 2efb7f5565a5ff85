"""Members that PostgreSQL refuses to release. SQLite checks only the columns that change."""

from __future__ import annotations

from freehold.model.flow import FlowKind, NewFlow, NewNode
from freehold.model.job import NewJob
from freehold.model.outcome import OutcomeKind
from tests.broken_rows import FORBIDDEN, poison
from tests.store_contract.flows import settle
from tests.stores import PostgresUnderTest


def test_a_member_of_a_map_that_the_database_refuses_is_canceled(
    postgres_under_test: PostgresUnderTest,
) -> None:
    store = postgres_under_test
    store.reset()
    nodes = [
        NewNode(number=1, name="a", job=NewJob(task="a")),
        NewNode(number=2, name="b", jobs=(NewJob(task="b"),) * 3, sources=((1, ""),)),
    ]
    new = NewFlow(kind=FlowKind.WORKFLOW, name="w")
    created = store.store.create_workflow(new, nodes, within=False)
    first, second, third = created.jobs[2]
    poison(store, second, FORBIDDEN)
    settle(store)
    store.end(store.claim_one(), OutcomeKind.SUCCESS)
    settle(store)
    assert [each.job_id for each in store.claim()] == [first, third]
    assert store.state(second) == "canceled"
    assert "the database refuses to release it" in (store.job(second).reason or "")
