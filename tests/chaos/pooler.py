"""PgBouncer in transaction mode in front of PostgreSQL: each transaction gets any connection."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from tests.chaos.accounts import change_owner, unprivileged

_PORT = 6432
_START_SECONDS = 20.0
_SETTINGS = """
[databases]
* = host={host} port={port} user=postgres
[pgbouncer]
listen_addr =
listen_port = {own_port}
unix_socket_dir = {folder}
auth_type = any
pool_mode = {pool_mode}
default_pool_size = 20
max_client_conn = 500
server_round_robin = {round_robin}
server_login_retry = 1
logfile = {folder}/log
pidfile = {folder}/pid
"""


def pooler_is_installed() -> bool:
    return _program() is not None


def missing_pooler() -> str | None:
    """How to get it; None if it is there."""
    return None if pooler_is_installed() else "PgBouncer not found: apt-get install pgbouncer"


def _program() -> str | None:
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


class Pooler:
    """Between the proxy and the server. Round robin, so that no client keeps its connection."""

    def __init__(
        self,
        server_url: str,
        *,
        pool_mode: str = "transaction",
        round_robin: bool = True,
        settings: str = _SETTINGS,
    ) -> None:
        self._server = conninfo_to_dict(server_url)
        self._pool_mode, self._round_robin, self._settings = pool_mode, round_robin, settings
        self.folder = Path(tempfile.mkdtemp(prefix="freehold-pooler-"))
        self.socket = f"{self.folder}/.s.PGSQL.{_PORT}"

    @property
    def url(self) -> str:
        return f"postgresql:///postgres?host={self.folder}&port={_PORT}&user=postgres"

    def start(self) -> None:
        program = _program()
        assert program is not None, "PgBouncer is not installed"
        file = self.folder / "pgbouncer.ini"
        text = self._settings.format(
            host=self._server["host"],
            port=self._server["port"],
            own_port=_PORT,
            folder=self.folder,
            pool_mode=self._pool_mode,
            round_robin=int(self._round_robin),
        )
        file.write_text(text, "utf-8")
        change_owner(self.folder)
        self._process = subprocess.Popen(
            [program, str(file)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **unprivileged(),
        )
        deadline = time.monotonic() + _START_SECONDS
        while not Path(self.socket).exists():
            assert self._process.poll() is None, f"PgBouncer refuses {text}"
            assert time.monotonic() < deadline, "PgBouncer did not start"
            time.sleep(0.02)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
