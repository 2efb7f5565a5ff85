"""Two jobs leave one lane concurrently: the next job is still promoted."""

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
from tests.concurrency import wait_until
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
def test_a_lane_continues_if_its_next_job_is_canceled_while_the_holder_ends(
    lane: PostgresUnderTest,
) -> None:
    """The end waits for the job that the cancel removes, and must then find another."""
    ids = [lane.add(target="L") for _ in range(3)]
    first = lane.claim_one()
    assert lane.claim() == []  # the two others are followers now
    ended = threading.Thread(target=lane.end, args=(first, OutcomeKind.SUCCESS))
    assert isinstance(lane.database, PostgresDatabase)
    with psycopg.connect(lane.database.url) as canceler:
        session = lane.database.caller_session(canceler)
        results = run(operate(OperatorVerb.CANCEL, [ids[1]], "ann", None), session)
        assert results[0].status == "done"
        ended.start()
        wait_until(lambda: _waits_for_a_lock(lane), "the end waits")
    ended.join()
    assert [attempt.job_id for attempt in lane.claim()] == [ids[2]]


@pytest.mark.requirement("S4.3", "P6")
def test_the_sweep_continues_the_lane_if_the_process_dies_before_it_promotes(
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
    steps.close()  # the process ends before it repeats the statement
    assert lane.claim() == []
    with psycopg.connect(lane.database.url) as other:  # a locked row is not waited for
        other.execute(b"select from freehold.job where id = %d for update" % ids[2])
        assert lane.store.promote_stalled_lanes("", 10).freed == ()
    assert lane.store.promote_stalled_lanes("", 10).freed == ("L",)
    assert [attempt.job_id for attempt in lane.claim()] == [ids[2]]
