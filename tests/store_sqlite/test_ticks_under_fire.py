"""One job for each tick on one file, with many sweepers that are killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from freehold.clock import VirtualClock
from freehold.store.sqlite.database import SqliteDatabase
from freehold.store.store import Store
from tests.concurrency import wait_until
from tests.sizes import sized
from tests.sweeping import TICK_SECONDS, SharedClock, definitions, sweeping, ticks_of

SCHEDULES = sized("SCHEDULES", short=20, long=100)
TICKS = sized("TICKS", short=5, long=20)
SWEEPERS = sized("SWEEPERS", short=4, long=20)
KILLS_EACH = sized("KILLS_EACH", short=2, long=5)


@pytest.mark.requirement("N1")
def test_every_tick_makes_one_job_whatever_is_killed(tmp_path: Path) -> None:
    path, clock = tmp_path / "jobs.db", SharedClock(VirtualClock().micros)
    database = SqliteDatabase(path, clock)
    store = Store(database.session())
    store.declare_schedules("test", definitions(SCHEDULES))
    with sweeping(
        SWEEPERS, lambda: Store(SqliteDatabase(path, clock, must_exist=True).session())
    ) as sweepers:
        for _ in range(TICKS):
            clock.advance(TICK_SECONDS)
            sweepers.kill(KILLS_EACH)
            wait_until(lambda: store.sweep_check(()).schedule_seconds != 0.0, "all ticks are fired")
    with database._engine.transaction() as connection:
        found = connection.execute("select tags, policy from job").fetchall()
    made = ticks_of(found)
    assert set(made.values()) == {1}, "a tick made two jobs"
    assert len(made) == SCHEDULES * TICKS, "a tick made no job"
    database.close()
