"""A busy tenant moves between two PostgreSQL servers, and its mover is killed on the way.

At some of its steps in the short form, at every step in the long one. Then another mover continues
or cancels the move. Every job that a producer got an id for must exist once in the end, and must
have run once.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from freehold import Freehold
from freehold.lab.devpostgres import DevPostgres
from freehold.model.tenant import HOME_SHARD, TenantState
from freehold.store.shard import MovableShard
from freehold.tenants.shards import Shards
from tests.concurrency import DEADLINE_SECONDS
from tests.conftest import SERVER_SETTINGS
from tests.sizes import is_long
from tests.tenants import traffic
from tests.tenants.dying_mover import HALF_COPIED
from tests.tenants.tenant_stores import EAST
from tests.worker.fleet import ROOT, eventually

BEFORE_SWITCH = ("mark", "pause", "retire", HALF_COPIED, "copy")
ALL_STEPS = (*BEFORE_SWITCH, "switch", "restore", "resume", "end", "clean up")
STEPS = {
    "continue": ALL_STEPS if is_long() else ("copy", "switch"),
    "cancel": BEFORE_SWITCH if is_long() else (HALF_COPIED,),
}


@pytest.fixture
def servers(postgres_url: str) -> Iterator[dict[str, str]]:
    """The server of the run, and one of this test's own."""
    with DevPostgres(settings=SERVER_SETTINGS) as second:
        yield {HOME_SHARD: postgres_url, EAST: second.url}


def die_at(step: str, to: str, environment: dict[str, str], shards: Shards) -> None:
    """Returns when both servers have released the dead mover's lock, which refuses the next one."""
    mover = [sys.executable, "-m", "tests.tenants.dying_mover", environment["FREEHOLD_URL"], to]
    ended = subprocess.run(
        [*mover, step], cwd=ROOT, env=environment, check=False, timeout=DEADLINE_SECONDS
    )
    assert ended.returncode == -signal.SIGKILL
    for shard in (HOME_SHARD, EAST):
        eventually(lambda shard=shard: is_unlocked(shards[shard]))  # type: ignore[misc]


def is_unlocked(shard: MovableShard) -> bool:
    with shard.move_lock("acme") as is_locked_here:
        return is_locked_here


def identity(url: str) -> object:
    with psycopg.connect(url) as connection:
        return connection.execute("select system_identifier from pg_control_system()").fetchone()


@pytest.mark.requirement("S4.2", "S2.1")
@pytest.mark.parametrize("then", STEPS)
def test_no_job_is_lost_or_doubled_at_whichever_step_the_mover_dies(
    servers: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    assert identity(servers[HOME_SHARD]) != identity(servers[EAST])
    monkeypatch.setenv("FREEHOLD_SHARD_EAST", servers[EAST])
    environment = traffic.environment_of(servers, tmp_path)
    app = Freehold(servers[HOME_SHARD])
    app.migrate()
    app.tenants.create("acme")
    acme, source, goal = app.tenant("acme"), HOME_SHARD, EAST
    with traffic.working(environment, tmp_path) as worker:
        with traffic.producing(acme) as producers:
            for step in STEPS[then]:
                die_at(step, goal, environment, app.tenants.shards)
                if then == "cancel":
                    assert app.tenants.get("acme").state is TenantState.MOVING
                    app.tenants.move("acme", source)
                    traffic.wait_until_served(producers)
                app.tenants.move("acme", goal)
                traffic.wait_until_served(producers)
                assert app.tenants.get("acme").shard == goal
                assert not app.tenants.shards[source].holds("acme")
                assert not app.tenants.shards[source].is_retired("acme")
                source, goal = goal, source
        traffic.drain(acme, worker)
    traffic.check_nothing_lost_or_doubled(acme, producers, tmp_path)
    app.close()
