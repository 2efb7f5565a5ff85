"""A tenant moves while producers and workers use it, and the mover itself is killed.

The mover is a process, killed a little later each time and started again. Every job that a producer
got an id for must exist once in the end, and must have run once.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from freehold import Freehold
from freehold.model.tenant import HOME_SHARD
from tests.sizes import is_long
from tests.tenants import traffic
from tests.tenants.tenant_stores import EAST
from tests.worker.fleet import ROOT

MOVES = (EAST, HOME_SHARD, EAST) if is_long() else (EAST,)
#: From before the start of the move to after its end.
KILLED_AFTER_SECONDS = (0.2, 0.35, 0.5, 0.7, 1.0)


def move(to: str, environment: dict[str, str], kill_after_seconds: float | None) -> bool:
    """Returns whether the mover ended by itself."""
    mover = subprocess.Popen(
        [sys.executable, "-m", "freehold", "tenants", "move", "acme", to],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, err = mover.communicate(timeout=kill_after_seconds)
    except subprocess.TimeoutExpired:
        mover.kill()
        mover.communicate()
        return False
    assert (mover.returncode, out) == (0, f"tenant acme is in shard {to}\n"), err
    return True


@pytest.mark.requirement("S4.2", "S2.1")
def test_no_job_is_lost_or_doubled_however_often_the_mover_is_killed(
    urls: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FREEHOLD_SHARD_EAST", urls[EAST])
    environment = traffic.environment_of(urls, tmp_path)
    app = Freehold(urls[HOME_SHARD])
    app.migrate()
    app.tenants.create("acme")
    acme = app.tenant("acme")
    with traffic.working(environment, tmp_path) as worker:
        with traffic.producing(acme) as producers:
            for to in MOVES:
                _move_with_kills(to, environment)
                traffic.wait_until_served(producers)
        traffic.drain(acme, worker)
    traffic.check_nothing_lost_or_doubled(acme, producers, tmp_path)
    assert app.tenants.get("acme").shard == EAST
    assert not app.tenants.shards[HOME_SHARD].holds("acme")
    app.close()


def _move_with_kills(to: str, environment: dict[str, str]) -> None:
    for seconds in KILLED_AFTER_SECONDS:
        if move(to, environment, seconds):
            return
    assert move(to, environment, None)
