"""A standby that follows a server, and takes its place when that one is stopped hard.

Replication is synchronous before the primary is stopped: whatever was acknowledged is on the
standby. Without that, a promotion loses commits, and no queue could do anything about it.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from freehold.lab.devpostgres import DevPostgres
from tests.chaos.accounts import unprivileged

_PATIENCE_SECONDS = 60.0
_FOLLOWS = "select count(*) from pg_stat_replication where sync_state = 'sync' and flush_lsn >= %s"


def follower(primary: DevPostgres, settings: dict[str, str | int]) -> DevPostgres:
    """A standby that has everything that was ever acknowledged, from now on."""
    standby = DevPostgres(settings=settings)
    try:
        _copy(primary, standby.data)
        standby.start()
        with psycopg.connect(primary.url, autocommit=True) as admin:
            admin.execute("alter system set synchronous_standby_names = '*'")
            admin.execute("select pg_reload_conf()")
            _until_it_follows(admin)
    except BaseException:
        standby.close()
        raise
    return standby


def take_over(standby: DevPostgres, primary: DevPostgres) -> None:
    primary.stop("immediate")
    with psycopg.connect(standby.url, autocommit=True) as admin:
        assert admin.execute("select pg_promote(true, 60)").fetchone() == (True,)
    primary.close()


def _copy(primary: DevPostgres, to: Path) -> None:
    server = conninfo_to_dict(primary.url)
    program = Path((primary.data / "postmaster.opts").read_text("utf-8").split()[0])
    command = [
        str(program.with_name("pg_basebackup")),
        "--pgdata",
        str(to),
        "--write-recovery-conf",
        "--checkpoint=fast",
        "--no-sync",
        "--host",
        str(server["host"]),
        "--port",
        str(server["port"]),
        "--username",
        "postgres",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", **unprivileged())
    assert done.returncode == 0, done.stderr


def _until_it_follows(admin: psycopg.Connection[Any]) -> None:
    """All that was written before it was synchronous, too."""
    row = admin.execute("select pg_current_wal_flush_lsn()").fetchone()
    assert row is not None
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while admin.execute(_FOLLOWS, (row[0],)).fetchone() != (1,):
        assert time.monotonic() < deadline, "the standby does not follow"
        time.sleep(0.05)
