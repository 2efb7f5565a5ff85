"""Whatever happens at once, a lane has one live attempt, and never gets stuck.

FREEHOLD_FIRE_SECONDS makes it longer: races are rare.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Any

import pytest

from freehold.store.postgres.database import PostgresDatabase
from tests.crowd import wait_until
from tests.store_postgres.fire import Fire

SECONDS = float(os.environ.get("FREEHOLD_FIRE_SECONDS", "3"))
#: So many attempts are ended by their owners, however long a busy machine takes for them: fewer
#: would prove nothing.
LEAST_HELD = 100

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
def test_lanes_under_fire(database: PostgresDatabase, lanes: int, operators: int) -> None:
    fire = Fire(database, database.url, lanes, operators)
    deadlocks_before = deadlocks(fire)
    burn(fire)

    assert fire.rows("select id from freehold.job") == [], "every job ends, no lane is stuck"
    ended = [row[0] for row in fire.rows("select id from freehold.history")]
    assert len(ended) == len(set(ended))
    assert set(ended) == fire.committed, "no job is lost, none comes from a rollback"
    check_one_at_a_time((*row[:3], row[3:]) for row in fire.rows(ATTEMPTS))
    check_one_at_a_time((h.target, h.since, h.until, (h.token, h.job_id)) for h in fire.held)
    assert deadlocks(fire) == deadlocks_before


def burn(fire: Fire) -> None:
    """Until the time is up; then no more new jobs, and the claimers go on until all have ended."""
    crew = fire.crew()
    with ThreadPoolExecutor(len(crew)) as pool:
        futures = [pool.submit(guarded(fire, work)) for work in crew]
        try:
            wait(futures, timeout=SECONDS)
            wait_until(lambda: failed(futures) or len(fire.held) >= LEAST_HELD, "enough is done")
            fire.writing.clear()
            wait_until(lambda: failed(futures) or fire.rescue() == 0, "every job has ended")
        finally:
            fire.writing.clear()
            fire.working.clear()
    for future in futures:
        future.result()


def failed(futures: list[Future[None]]) -> bool:
    return any(future.done() and future.exception() for future in futures)


def guarded(fire: Fire, work: Callable[[], None]) -> Callable[[], None]:
    """An error in one ends all, instead of leaving the others without it."""

    def run() -> None:
        try:
            work()
        except BaseException:
            fire.working.clear()
            raise

    return run


def check_one_at_a_time(attempts: Iterable[tuple[str, Any, Any, Any]]) -> None:
    """Within a lane, an attempt begins after the one before has ended; its token is larger."""
    lanes: dict[str, list[tuple[Any, Any, Any]]] = defaultdict(list)
    for target, since, until, what in attempts:
        lanes[target].append((since, until, what))
    assert lanes
    for target, lane in lanes.items():
        for before, after in pairwise(sorted(lane)):
            assert before[1] <= after[0], f"two at once in {target}: {before} {after}"
            assert before[2][0] < after[2][0], f"tokens do not grow in {target}: {before} {after}"


def deadlocks(fire: Fire) -> int:
    rows = fire.rows("select deadlocks from pg_stat_database where datname = current_database()")
    return int(rows[0][0])


@pytest.mark.requirement("S4.3")
def test_the_checker_finds_two_attempts_at_once() -> None:
    first, second = ("lane", 1.0, 3.0, (1, 1)), ("lane", 2.0, 4.0, (2, 2))
    with pytest.raises(AssertionError, match="two at once"):
        check_one_at_a_time([first, second])
