"""What a claim costs that finds nothing: most claims do."""

from __future__ import annotations

from freehold.model.job import NewJob
from freehold.store.sqlite.database import SqliteDatabase
from freehold.store.store import Store
from freehold.store.types import ClaimRequest, QueueDemand

_ASK = ClaimRequest(owner="w1", lease_seconds=30.0, wants=(QueueDemand("default", 4),))


def test_a_claim_that_finds_nothing_looks_answers_and_does_no_more() -> None:
    database = SqliteDatabase(None)
    store = Store(database.session())
    done: list[str] = []
    with database._engine.transaction() as connection:
        connection.set_trace_callback(done.append)
    done.clear()
    assert store.claim(_ASK) == []
    assert [sql.split()[0] for sql in done] == ["begin", "delete", "insert", "select", "commit"]
    store.enqueue([NewJob(task="a")])
    assert len(store.claim(_ASK)) == 1
    database.close()
