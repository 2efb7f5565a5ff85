"""Three PostgreSQL servers under Patroni, with one etcd.

Patroni comes from a virtual environment of its own, etcd from the system, PostgreSQL from where
`DevPostgres` finds it. None of them runs as root.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from freehold.lab.devpostgres import _reachable_binaries, find_binaries
from freehold.lab.server_account import account_for_server
from tests.chaos.accounts import change_owner, unprivileged
from tests.chaos.cluster_network import network_for

#: The folder of Patroni's virtual environment; another one can be named by the variable.
_PATRONI = Path(os.environ.get("FREEHOLD_PATRONI", "/tmp/freehold-patroni"))
_NODES = 3
_WAIT_SECONDS = 180.0
_POLL_SECONDS = 0.1
_STANDBYS = (
    "select count(*) filter (where state = 'streaming'), "
    "count(*) filter (where sync_state in ('sync', 'quorum')) from pg_stat_replication"
)
#: As `ttl` is the time after which a silent primary is replaced, no fail-over is faster.
_DCS = {
    "ttl": 20,
    "loop_wait": 5,
    "retry_timeout": 5,
    "maximum_lag_on_failover": 2**30,
}
_TRUST = (
    "local all all trust",
    "local replication all trust",
    "host all all all trust",
    "host replication all all trust",
)
_PARAMETERS = {
    # A crash of the server loses no commit without fsync; a crash of the machine is not tested.
    "fsync": "off",
    "max_connections": 300,
    "wal_keep_size": "1GB",
    "shared_buffers": "64MB",
}


def what_is_missing() -> list[str]:
    """Commands that install it."""
    missing = []
    if shutil.which("etcd") is None:
        missing.append("apt-get install etcd-server")
    if not (_PATRONI / "bin" / "patroni").exists():
        missing.append(
            f"/usr/bin/python3 -m venv {_PATRONI} && "  # an unprivileged account must reach it
            f"{_PATRONI}/bin/pip install 'patroni[etcd3,psycopg3]' 'psycopg[binary]'"
        )
    return missing


class Node:
    """One server and its Patroni."""

    def __init__(self, number: int, folder: Path, port: int, rest_port: int) -> None:
        self.number = number
        self.name = f"n{number + 1}"
        self.folder = folder
        self.port = port
        self.rest_port = rest_port
        self.data = folder / "data"
        self.patroni: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return (
            f"postgresql:///postgres?host={self.folder}&port={self.port}&user=postgres"
            "&connect_timeout=2&application_name=chaos"
        )

    def server_processes(self) -> list[int]:
        """The postmaster first; none if it does not run."""
        try:
            postmaster = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
            children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text()
        except (OSError, ValueError):
            return []
        return [postmaster, *map(int, children.split())]

    def walsenders(self) -> list[int]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            rows = connection.execute("select pid from pg_stat_replication").fetchall()
        return [pid for (pid,) in rows]

    def freeze(self, *, with_patroni: bool) -> list[int]:
        """Returns the processes that stand still."""
        patroni = [self.patroni.pid] if self.patroni is not None and with_patroni else []
        send([*patroni, *self.server_processes()[:1]], signal.SIGSTOP)
        time.sleep(_POLL_SECONDS)  # until then the postmaster may have started one more
        frozen = [*patroni, *self.server_processes()]
        send(frozen, signal.SIGSTOP)
        return frozen

    def kill(self) -> None:
        """As if its machine lost its power."""
        if self.patroni is not None:
            self.patroni.kill()
            self.patroni.wait()
            self.patroni = None
        send(self.server_processes(), signal.SIGKILL)

    def is_primary(self) -> bool:
        try:
            with psycopg.connect(self.url, autocommit=True) as connection:
                return connection.execute("select pg_is_in_recovery()").fetchone() == (False,)
        except psycopg.Error:
            return False

    def has_standbys(self, *, synchronous: bool) -> bool:
        try:
            with psycopg.connect(self.url, autocommit=True) as connection:
                streaming, waited_for = connection.execute(_STANDBYS).fetchone() or (0, 0)
        except psycopg.Error:
            return False
        return streaming == _NODES - 1 and (waited_for >= 1 or not synchronous)


def send(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


class Cluster:
    """Starts, finds the primary, and disturbs nodes."""

    def __init__(self, logs: Path, *, synchronous: bool) -> None:
        self._logs = logs
        self._synchronous = synchronous
        self._folder = Path(tempfile.mkdtemp(prefix="freehold-cluster-", dir="/tmp"))
        self._folder.chmod(0o755)
        self.network = network_for(_NODES)
        self._binaries = _reachable_binaries(find_binaries(), account_for_server())
        free_port = self.network.free_port
        self.nodes = [
            Node(number, self._new_folder(f"n{number + 1}"), free_port(), free_port())
            for number in range(_NODES)
        ]
        self._etcd_port = self.network.free_port()
        self._etcd: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """With all hosts, of which libpq finds the primary."""
        hosts = ",".join(str(node.folder) for node in self.nodes)
        ports = ",".join(str(node.port) for node in self.nodes)
        return (
            f"postgresql:///postgres?host={hosts}&port={ports}&user=postgres"
            "&target_session_attrs=read-write&connect_timeout=3"
        )

    def _new_folder(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir(mode=0o755)
        change_owner(folder)
        return folder

    # -- processes ---------------------------------------------------------------------------

    def start(self) -> None:
        self._start_etcd()
        self.start_node(self.nodes[0])
        wait_for(self.nodes[0].is_primary, "the first node is the primary")
        for node in self.nodes[1:]:
            self.start_node(node)
        self.wait_until_healthy()

    def _start_etcd(self) -> None:
        peer = f"http://{self.network.hub}:{self.network.free_port()}"
        client = f"http://{self.network.hub}:{self._etcd_port}"
        options = {
            "name": "etcd",
            "data-dir": self._new_folder("etcd") / "data",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"etcd={peer}",
        }
        command = ["etcd", *(f"--{name}={value}" for name, value in options.items())]
        self._etcd = self._run(None, command, "etcd.log")

    def start_node(self, node: Node) -> None:
        file = node.folder / "patroni.json"
        file.write_text(json.dumps(self._settings(node)))  # JSON is YAML
        command = [str(_PATRONI / "bin" / "patroni"), str(file)]
        node.patroni = self._run(node.number, command, f"{node.name}.log")

    def _run(self, number: int | None, command: list[str], log: str) -> subprocess.Popen[bytes]:
        """`setpriv`, because `ip netns exec` needs the privileges of this process."""
        account = unprivileged()
        lower = [
            "setpriv",
            f"--reuid={account['user']}",
            f"--regid={account['group']}",
            "--clear-groups",
        ]
        with (self._logs / log).open("ab") as file:
            return subprocess.Popen(
                [*self.network.prefix(number), *(lower if account else []), *command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd="/",
                start_new_session=True,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": "/"},
            )

    def _settings(self, node: Node) -> dict[str, Any]:
        address = self.network.addresses[node.number]
        rest = f"{address}:{node.rest_port}"
        server = f"{address}:{node.port}"
        user = {"username": "postgres"}
        return {
            "scope": "freehold",
            "name": node.name,
            "restapi": {"listen": rest, "connect_address": rest},
            "etcd3": {"host": f"{self.network.hub}:{self._etcd_port}"},
            "bootstrap": {
                "dcs": {
                    **_DCS,
                    "synchronous_mode": self._synchronous,
                    "postgresql": {"use_pg_rewind": True, "parameters": _PARAMETERS},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "data-checksums", "no-sync"],
            },
            "postgresql": {
                "listen": server,
                "connect_address": server,
                "data_dir": str(node.data),
                "bin_dir": str(self._binaries),
                "pgpass": str(node.folder / "pgpass"),
                "use_unix_socket": True,
                "use_unix_socket_repl": True,
                "pg_hba": [*_TRUST],
                "authentication": {"superuser": user, "replication": user, "rewind": user},
                "parameters": {"unix_socket_directories": str(node.folder)},
            },
        }

    # -- state -------------------------------------------------------------------------------

    def primary(self) -> Node:
        found: list[Node] = []

        def find() -> bool:
            found[:] = [node for node in self.nodes if node.is_primary()]
            return len(found) == 1

        wait_for(find, "there is one primary")
        return found[0]

    def wait_until_another_is_primary(self, than: Node) -> Node:
        others = [node for node in self.nodes if node is not than]
        found: list[Node] = []

        def find() -> bool:
            found[:] = [node for node in others if node.is_primary()]
            return bool(found)

        wait_for(find, f"another node than {than.name} is the primary")
        return found[0]

    def wait_until_healthy(self) -> None:
        """One primary, all others stream from it, and one is waited for."""

        def is_healthy() -> bool:
            primaries = [node for node in self.nodes if node.is_primary()]
            return len(primaries) == 1 and primaries[0].has_standbys(synchronous=self._synchronous)

        wait_for(is_healthy, f"the cluster is healthy (see the logs in {self._logs})")

    def switch_over(self, node: Node) -> Callable[[], None]:
        """To the standby that Patroni chooses. Returns what waits for its end."""
        command = [str(_PATRONI / "bin" / "patronictl"), "-c", str(node.folder / "patroni.json")]
        command += ["switchover", "--leader", node.name, "--force"]
        process = subprocess.Popen(
            [*self.network.prefix(None), *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return lambda: _check_success(process)

    def close(self) -> None:
        for node in self.nodes:
            send(node.server_processes(), signal.SIGCONT)
            node.kill()
        if self._etcd is not None:
            self._etcd.kill()
            self._etcd.wait()
        self.network.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _check_success(process: subprocess.Popen[bytes]) -> None:
    if process.wait(_WAIT_SECONDS) != 0:
        raise RuntimeError("patronictl has failed")


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {_WAIT_SECONDS:g} s: {what}")
        time.sleep(_POLL_SECONDS)
