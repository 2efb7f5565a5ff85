"""Under any load a lane has one live attempt, and never gets stuck.

FREEHOLD_TEST_LOAD_SECONDS makes it longer: races are rare.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Any

import pytest

from freehold.store.postgres.database import PostgresDatabase
from tests.concurrency import wait_until
from tests.sizes import sized
from tests.store_postgres.lane_load import LaneLoad

SECONDS = sized("LOAD_SECONDS", short=2, long=30)
#: So many attempts are ended by their owners, also if a busy machine needs longer for them: fewer
#: would prove nothing.
LEAST_OBSERVED = 100

ATTEMPTS = """
select target, leased_at, ended_at, token, id from (
    select h.target, h.leased_at, h.finished_at as ended_at, h.token, h.id
    from freehold.history h where h.state = 'succeeded'
    union all
    select h.target, e.leased_at, e.at, e.token, e.job_id
    from freehold.event e join freehold.history h on h.id = e.job_id
    where e.token is not null) attempts
order by target, leased_at
"""


@pytest.mark.requirement("S4.3", "S0.2", "S0.8", "S4.7", "P2")
@pytest.mark.parametrize(("lanes", "operators"), [(40, 0), (3, 0), (40, 1)])
def test_a_lane_under_load_has_one_live_attempt_and_never_gets_stuck(
    database: PostgresDatabase, lanes: int, operators: int
) -> None:
    load = LaneLoad(database, database.url, lanes, operators)
    deadlocks_before = deadlocks(load)
    run_load(load)

    assert load.rows("select id from freehold.job") == [], "every job ends, no lane is stuck"
    ended = [row[0] for row in load.rows("select id from freehold.history")]
    assert len(ended) == len(set(ended))
    assert set(ended) == load.committed, "no job is lost, none comes from a rollback"
    check_one_at_a_time((*row[:3], row[3:]) for row in load.rows(ATTEMPTS))
    check_one_at_a_time((h.target, h.since, h.until, (h.token, h.job_id)) for h in load.observed)
    assert deadlocks(load) == deadlocks_before


def run_load(load: LaneLoad) -> None:
    """Until the time is up; then without new jobs, until all have ended."""
    threads = load.threads()
    with ThreadPoolExecutor(len(threads)) as pool:
        futures = [pool.submit(stops_all(load, work)) for work in threads]
        try:
            wait(futures, timeout=SECONDS)
            wait_until(
                lambda: failed(futures) or len(load.observed) >= LEAST_OBSERVED,
                "enough attempts have ended",
            )
            load.writing.clear()
            wait_until(lambda: failed(futures) or load.rescue() == 0, "every job has ended")
        finally:
            load.writing.clear()
            load.working.clear()
    for future in futures:
        future.result()


def failed(futures: list[Future[None]]) -> bool:
    return any(future.done() and future.exception() for future in futures)


def stops_all(load: LaneLoad, work: Callable[[], None]) -> Callable[[], None]:
    """An error in one thread ends all of them."""

    def run() -> None:
        try:
            work()
        except BaseException:
            load.working.clear()
            raise

    return run


def check_one_at_a_time(attempts: Iterable[tuple[str, Any, Any, Any]]) -> None:
    """Within a lane, an attempt begins after the previous one has ended, with a larger token."""
    lanes: dict[str, list[tuple[Any, Any, Any]]] = defaultdict(list)
    for target, since, until, what in attempts:
        lanes[target].append((since, until, what))
    assert lanes
    for target, lane in lanes.items():
        for before, after in pairwise(sorted(lane)):
            assert before[1] <= after[0], f"two at once in {target}: {before} {after}"
            assert before[2][0] < after[2][0], f"tokens do not grow in {target}: {before} {after}"


def deadlocks(load: LaneLoad) -> int:
    rows = load.rows("select deadlocks from pg_stat_database where datname = current_database()")
    return int(rows[0][0])


@pytest.mark.requirement("S4.3")
def test_the_checker_finds_two_attempts_at_once() -> None:
    first, second = ("lane", 1.0, 3.0, (1, 1)), ("lane", 2.0, 4.0, (2, 2))
    with pytest.raises(AssertionError, match="two at once"):
        check_one_at_a_time([first, second])
