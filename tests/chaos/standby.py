"""A standby of a server, which is promoted after the primary was stopped hard.

Replication is synchronous before the primary is stopped, so every acknowledged commit is on the
standby. Otherwise a promotion would lose commits, which no queue could prevent.
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

_SYNC_TIMEOUT_SECONDS = 60.0
_SYNCHRONOUS_STANDBYS = (
    "select count(*) from pg_stat_replication where sync_state = 'sync' and flush_lsn >= %s"
)


def start_standby(primary: DevPostgres, settings: dict[str, str | int]) -> DevPostgres:
    """Returns a standby that has every acknowledged commit from now on."""
    standby = DevPostgres(settings=settings)
    try:
        _copy(primary, standby.data)
        standby.start()
        with psycopg.connect(primary.url, autocommit=True) as admin:
            admin.execute("alter system set synchronous_standby_names = '*'")
            admin.execute("select pg_reload_conf()")
            _wait_until_synchronous(admin)
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


def _wait_until_synchronous(admin: psycopg.Connection[Any]) -> None:
    """Includes the commits from before replication was synchronous."""
    row = admin.execute("select pg_current_wal_flush_lsn()").fetchone()
    assert row is not None
    deadline = time.monotonic() + _SYNC_TIMEOUT_SECONDS
    while admin.execute(_SYNCHRONOUS_STANDBYS, (row[0],)).fetchone() != (1,):
        assert time.monotonic() < deadline, "the standby did not catch up"
        time.sleep(0.05)
