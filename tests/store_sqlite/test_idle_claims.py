"""The cost of a claim that finds nothing, as most claims do."""

from __future__ import annotations

from freehold.model.job import NewJob
from freehold.store.sqlite.database import SqliteDatabase
from freehold.store.store import Store
from freehold.store.types import ClaimRequest, QueueDemand

_REQUEST = ClaimRequest(owner="w1", lease_seconds=30.0, demands=(QueueDemand("default", 4),))


def test_a_claim_that_finds_nothing_executes_two_statements_and_the_result() -> None:
    database = SqliteDatabase(None)
    store = Store(database.session())
    done: list[str] = []
    with database._engine.transaction() as connection:
        connection.set_trace_callback(done.append)
    done.clear()
    assert store.claim(_REQUEST) == []
    assert [sql.split()[0] for sql in done] == ["begin", "delete", "insert", "select", "commit"]
    store.enqueue([NewJob(task="a")])
    assert len(store.claim(_REQUEST)) == 1
    database.close()
