"""A busy tenant moves between two PostgreSQL servers, and its mover is killed on the way.

At some of its steps in the short form, at every step in the long one. Then another mover goes on,
or takes the tenant back. A job that a producer stored must be there in the end, once, and have run
once.
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
from freehold.store.movable_shard import MovableShard
from tests.conftest import SERVER_SETTINGS
from tests.crowd import DEADLINE_SECONDS
from tests.sizes import is_long
from tests.tenants import traffic
from tests.tenants.dying_mover import HALF_COPIED
from tests.tenants.rooms import EAST
from tests.worker.fleet import ROOT, eventually

BEFORE_THE_FLIP = ("mark", "hold", "lock up", HALF_COPIED, "copy")
STEPS = {
    "goes on": (*BEFORE_THE_FLIP, "flip", "clean up") if is_long() else ("hold", "copy", "flip"),
    "goes back": BEFORE_THE_FLIP if is_long() else ("lock up", HALF_COPIED),
}


@pytest.fixture
def servers(postgres_url: str) -> Iterator[dict[str, str]]:
    """The run's own, and one that nobody else has."""
    with DevPostgres(settings=SERVER_SETTINGS) as second:
        yield {HOME_SHARD: postgres_url, EAST: second.url}


def die_at(step: str, to: str, environment: dict[str, str], source: MovableShard) -> None:
    """The next mover is refused until the server has seen that this one is gone."""
    mover = [sys.executable, "-m", "tests.tenants.dying_mover", environment["FREEHOLD_URL"], to]
    ended = subprocess.run(
        [*mover, step], cwd=ROOT, env=environment, check=False, timeout=DEADLINE_SECONDS
    )
    assert ended.returncode == -signal.SIGKILL
    eventually(lambda: is_free(source))


def is_free(source: MovableShard) -> bool:
    with source.alone("acme") as is_alone:
        return is_alone


def identity(url: str) -> object:
    with psycopg.connect(url) as connection:
        return connection.execute("select system_identifier from pg_control_system()").fetchone()


@pytest.mark.requirement("S4.2", "S2.1")
@pytest.mark.parametrize("then", STEPS)
def test_nothing_is_lost_or_doubled_wherever_the_mover_dies(
    servers: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    assert identity(servers[HOME_SHARD]) != identity(servers[EAST])
    monkeypatch.setenv("FREEHOLD_PLACE_EAST", servers[EAST])
    environment = traffic.surroundings(servers, tmp_path)
    app = Freehold(servers[HOME_SHARD])
    app.migrate()
    app.tenants.create("acme")
    acme, source, goal = app.tenant("acme"), HOME_SHARD, EAST
    with traffic.working(environment, tmp_path) as worker:
        with traffic.producing(acme) as producers:
            for step in STEPS[then]:
                die_at(step, goal, environment, app.tenants.places[source])
                if then == "goes back":
                    assert app.tenants.get("acme").state is TenantState.MOVING
                    app.tenants.move("acme", source)
                    traffic.is_served(producers)
                app.tenants.move("acme", goal)
                traffic.is_served(producers)
                assert app.tenants.get("acme").place == goal
                assert not app.tenants.places[source].holds("acme")
                assert not app.tenants.places[source].is_locked_up("acme")
                source, goal = goal, source
        traffic.drained(acme, worker)
    traffic.check_nothing_lost_or_doubled(acme, producers, tmp_path)
    app.close()
