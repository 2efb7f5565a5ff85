"""Retention drops whole days and prepares new ones, and blocks no other transaction."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from freehold.errors import StoreUnavailable
from freehold.model.outcome import OutcomeKind
from tests.concurrency import wait_until
from tests.store_postgres.catalog import WAITING
from tests.stores import PostgresUnderTest

DAY_SECONDS = 86400.0
AHEAD = 8  # today and seven more


@pytest.fixture
def days(postgres_url: str) -> Iterator[PostgresUnderTest]:
    """On a clock of its own, far from the days that migrate prepared."""
    under_test = PostgresUnderTest(postgres_url)
    yield under_test
    under_test.close()


def finish_one(days: PostgresUnderTest) -> int:
    job_id = days.add()
    assert days.end(days.claim_one(), OutcomeKind.FAIL)
    return job_id


def partition_of(days: PostgresUnderTest, job_id: int, table: str = "history") -> str:
    """The partition of its row: a day, or the default partition."""
    name = "id" if table == "history" else "job_id"
    rows = days.sql(f"select tableoid::regclass::text from {{s}}{table} where {name} = {job_id}")
    return str(rows[0][0]).removeprefix("freehold.")


def tables(days: PostgresUnderTest, parent: str) -> set[str]:
    rows = days.sql(
        "select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid "
        f"where i.inhparent = '{{s}}{parent}'::regclass"
    )
    return {row[0] for row in rows}


def today(days: PostgresUnderTest, parent: str = "history") -> str:
    return f"{parent}_{days.now():%Y%m%d}"


def retain_all(days: PostgresUnderTest, keep_days: float, limit: int = 1000) -> int:
    total = 0
    while gone := days.store.apply_retention(keep_days, limit):
        total += gone
    return total


@pytest.mark.requirement("S2.5")
def test_migrate_prepares_today_and_a_week(days: PostgresUnderTest) -> None:
    for parent in ("history", "event"):
        assert len(tables(days, parent)) == AHEAD + 1


@pytest.mark.requirement("S2.5")
def test_days_are_prepared_ahead_and_rows_are_stored_in_them(days: PostgresUnderTest) -> None:
    days.store.apply_retention(30, 1000)
    for _ in range(AHEAD):
        job_id = finish_one(days)
        assert partition_of(days, job_id) == today(days)
        assert partition_of(days, job_id, "event") == today(days, "event")
        days.advance(DAY_SECONDS)
    assert partition_of(days, finish_one(days)) == "history_rest", (
        "no partition was prepared for this day"
    )


@pytest.mark.requirement("S2.5")
def test_old_days_are_dropped_and_no_younger_or_live_job(days: PostgresUnderTest) -> None:
    days.store.apply_retention(30, 1000)
    old, live = finish_one(days), days.add(delay_seconds=100 * DAY_SECONDS)
    old_day = today(days)
    days.advance(3 * DAY_SECONDS)
    young = finish_one(days)
    days.advance(2 * DAY_SECONDS + 1)
    assert retain_all(days, keep_days=4) > 0
    assert set(days.store.read([old, young, live])) == {young, live}
    assert days.store.events(old) == []
    assert old_day not in tables(days, "history")
    assert today(days) in tables(days, "history")
    assert retain_all(days, keep_days=4) == 0, "nothing left to do"


@pytest.mark.requirement("S2.5")
def test_rows_of_the_default_partition_are_deleted_one_by_one_within_the_limit(
    days: PostgresUnderTest,
) -> None:
    old = [finish_one(days) for _ in range(5)]
    assert {partition_of(days, job_id) for job_id in old} == {"history_rest"}
    days.advance(10 * DAY_SECONDS)
    young = finish_one(days)
    # Two rows of history and two events at most, besides the days that migrate had prepared.
    retain_all_days = days.store.apply_retention(4, 2)
    assert retain_all_days >= 4
    assert len(days.store.read(old)) == 3
    retain_all(days, 4, limit=2)
    assert set(days.store.read([*old, young])) == {young}
    assert days.sql("select count(*) from {s}event_rest") == [(1,)]


@pytest.mark.requirement("S2.5")
def test_a_day_with_rows_in_the_default_partition_gets_no_partition(
    days: PostgresUnderTest,
) -> None:
    early = finish_one(days)
    days.store.apply_retention(30, 1000)
    late = finish_one(days)
    assert [partition_of(days, job_id) for job_id in (early, late)] == ["history_rest"] * 2
    assert today(days) not in tables(days, "history")
    days.advance(DAY_SECONDS)
    assert partition_of(days, finish_one(days)) == today(days), "the other days were prepared"
    assert set(days.store.read([early, late])) == {early, late}


@pytest.mark.requirement("S2.5", "P10")
def test_notifications_of_queues_that_are_used_no_more_are_forgotten(
    days: PostgresUnderTest,
) -> None:
    for queue in ("old", "young"):
        days.sql(f"insert into {{s}}last_notified values ('+{queue}', {{s}}clock())")
        days.advance(DAY_SECONDS * 0.6)
    days.store.apply_retention(30, 100)
    assert days.sql("select topic from {s}last_notified") == [("+young",)]


def test_a_long_report_blocks_neither_retention_nor_finishing(
    days: PostgresUnderTest, postgres_url: str
) -> None:
    days.store.apply_retention(30, 1000)
    old = finish_one(days)
    days.advance(10 * DAY_SECONDS)
    for _ in range(5):
        days.add()
    attempts = days.claim()
    with psycopg.connect(postgres_url) as report, ThreadPoolExecutor(1) as pool:
        report.execute("select count(*) from freehold.history, freehold.event")
        report.execute("set lock_timeout = '5s'")
        retention = pool.submit(days.store.apply_retention, 4, 1000)
        for attempt in attempts:
            assert days.end(attempt, OutcomeKind.SUCCESS)
        retention.result()
        assert set(days.store.read([old])) == {old}, "kept while the report reads it"
    assert retain_all(days, 4) > 0
    assert days.store.read([old]) == {}


def test_a_job_that_ends_while_its_day_is_prepared_is_tried_again_and_not_refused(
    days: PostgresUnderTest, postgres_url: str
) -> None:
    """Refused, it would be stored as failed though it succeeded."""
    days.advance(30 * DAY_SECONDS)
    days.add()
    attempt = days.claim_one()
    with psycopg.connect(postgres_url) as other, ThreadPoolExecutor(1) as pool:
        other.execute("select freehold.rotate_partitions(36500, 7)")
        ended = pool.submit(days.end, attempt, OutcomeKind.SUCCESS)
        wait_until(lambda: bool(days.sql(f"select 1 {WAITING}")), "the end waits for the new day")
        other.commit()
        with pytest.raises(StoreUnavailable, match="try again"):
            ended.result(120)
    assert days.end(attempt, OutcomeKind.SUCCESS)
