"""Two removals from one lane that cross each other, and the jobs behind them."""

from __future__ import annotations

import threading

import psycopg
import pytest

from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.statements import run
from freehold.store.types import AttemptEnd
from freehold.store.verbs.finish import finish
from freehold.store.verbs.operator import operate
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
        answers = run(operate(OperatorVerb.CANCEL, [ids[1]], "ann", None), session)
        assert answers[0].what == "done"
        ended.start()
        wait_until(lambda: _waits_for_a_lock(lane), "the end waits")
    ended.join()
    assert [attempt.job_id for attempt in lane.claim()] == [ids[2]]


@pytest.mark.requirement("S4.3", "P6")
def test_if_the_process_is_gone_before_it_looks_for_another_the_next_walk_does(
    lane: PostgresUnderTest,
) -> None:
    ids = [lane.add(target="L") for _ in range(3)]
    first = lane.claim_one()
    assert lane.claim() == []
    assert isinstance(lane.database, PostgresDatabase)
    session = lane.database.session()
    steps = finish(first.owner, [AttemptEnd(first, Outcome(kind=OutcomeKind.SUCCESS))])
    ended = threading.Thread(target=lambda: steps.send(session.execute(next(steps))))
    with psycopg.connect(lane.database.url) as canceler:
        run(
            operate(OperatorVerb.CANCEL, [ids[1]], "ann", None),
            lane.database.caller_session(canceler),
        )
        ended.start()
        wait_until(lambda: _waits_for_a_lock(lane), "the end waits")
    ended.join()
    steps.close()  # it was about to ask again, and is gone
    assert lane.claim() == []
    with psycopg.connect(lane.database.url) as other:  # who has it in hand is not waited for
        other.execute(b"select from freehold.job where id = %d for update" % ids[2])
        assert lane.store.free_lanes("", 10).freed == ()
    assert lane.store.free_lanes("", 10).freed == ("L",)
    assert [attempt.job_id for attempt in lane.claim()] == [ids[2]]
