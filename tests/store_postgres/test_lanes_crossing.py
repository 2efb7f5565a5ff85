"""Two removals from one lane that cross each other, and the jobs behind them."""

from __future__ import annotations

import threading

import psycopg
import pytest

from leasehold.model.operation import Verb
from leasehold.model.outcome import OutcomeKind
from leasehold.store.operating import operate
from leasehold.store.postgres.database import PostgresDatabase
from leasehold.store.steps import run
from tests.crowd import wait_until
from tests.stores import PostgresUnderTest, StoreUnderTest


@pytest.fixture
def lane(postgres_under_test: PostgresUnderTest) -> PostgresUnderTest:
    postgres_under_test.reset()
    return postgres_under_test


def _waits_for_a_lock(store: StoreUnderTest) -> bool:
    return bool(
        store.sql(
            "select pid from pg_stat_activity "
            "where wait_event_type = 'Lock' and datname = current_database()"
        )
    )


@pytest.mark.requirement("S4.3", "S4.7", "P6")
def test_a_lane_whose_next_job_is_canceled_while_the_holder_ends_goes_on(
    lane: PostgresUnderTest,
) -> None:
    """The end waits for the job that the cancel removes, and must then look for another."""
    ids = [lane.add(target="L") for _ in range(3)]
    first = lane.claim_one()
    assert lane.claim() == []  # the two others are behind it now
    ended = threading.Thread(target=lane.end, args=(first, OutcomeKind.SUCCESS))
    assert isinstance(lane.database, PostgresDatabase)
    with psycopg.connect(lane.database.url) as canceler:
        session = lane.database.caller_session(canceler)
        answers = run(operate(Verb.CANCEL, [ids[1]], "ann", None), session)
        assert answers[0].what == "done"
        ended.start()
        wait_until(lambda: _waits_for_a_lock(lane), "the end waits")
    ended.join()
    assert [attempt.job_id for attempt in lane.claim()] == [ids[2]]
