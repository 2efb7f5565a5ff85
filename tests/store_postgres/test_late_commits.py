"""Events whose transactions commit in another order than that of their ids."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from freehold.model.history import GAP_SECONDS
from freehold.model.operator_actions import OperatorVerb
from tests.stores import PostgresUnderTest

_EVENT = """
insert into freehold.event (job_id, at, attempt, kind, state)
values (4711, freehold.clock(), 1, 'paused', 'paused') returning id
"""


@pytest.fixture
def postgres(postgres_under_test: PostgresUnderTest) -> PostgresUnderTest:
    postgres_under_test.reset()
    return postgres_under_test


@contextmanager
def _open_transaction(postgres: PostgresUnderTest) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres._postgres.url) as connection:
        yield connection


def _pause_one(postgres: PostgresUnderTest) -> int:
    job_id = postgres.add()
    postgres.store.operate(OperatorVerb.PAUSE, [job_id], "ann", None)
    return job_id


def _beginning(postgres: PostgresUnderTest) -> int:
    """The id right before the events of the test."""
    _pause_one(postgres)
    return postgres.store.newest_event()


@pytest.mark.requirement("S2.5")
def test_an_event_that_commits_late_is_not_skipped(postgres: PostgresUnderTest) -> None:
    start = _beginning(postgres)
    with _open_transaction(postgres) as late:
        (late_id,) = late.execute(_EVENT).fetchone() or (0,)
        job_id = _pause_one(postgres)
        assert postgres.store.newest_event() > late_id
        assert postgres.store.events_after(start, 10) == []
        late.commit()
    seen = postgres.store.events_after(start, 10)
    assert [event.job_id for event in seen] == [4711, job_id]
    assert seen[0].id == late_id


def test_a_rolled_back_event_does_not_delay_readers_for_long(postgres: PostgresUnderTest) -> None:
    start = _beginning(postgres)
    with _open_transaction(postgres) as lost:
        lost.execute(_EVENT)
        lost.rollback()
    job_id = _pause_one(postgres)
    postgres.advance(GAP_SECONDS - 0.001)
    assert postgres.store.events_after(start, 10) == []
    postgres.advance(0.001)
    assert [event.job_id for event in postgres.store.events_after(start, 10)] == [job_id]
