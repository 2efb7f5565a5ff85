"""The demo's worker processes, kept in a list so that one can be killed and none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from freehold.lab.demo.handler_log import PATH_VARIABLE
from freehold.lab.demo.load import QUEUES

LEASE_SECONDS = 3.0
GRACE_SECONDS = 5.0
_LOG_LINES = 20


class WorkerProcesses:
    """All worker processes that the manager has started."""

    def __init__(self, folder: Path, url: str, schema: str, concurrency: int) -> None:
        self.handler_log = folder / "record"
        self._folder = folder
        self._log = folder / "workers.log"
        self._command = [
            sys.executable,
            "-m",
            "freehold",
            "worker",
            "--app",
            "freehold.lab.demo.worker_app:app",
            "--concurrency",
            str(concurrency),
            "--lease-timeout-seconds",
            str(LEASE_SECONDS),
            "--shutdown-grace-seconds",
            str(GRACE_SECONDS),
            *(f"--queue={queue}" for queue in QUEUES),
        ]
        self._environment = _own_environment() | {
            "FREEHOLD_URL": url,
            "FREEHOLD_SCHEMA": schema,
            PATH_VARIABLE: str(self.handler_log),
        }
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, arguments: Sequence[str], slot: int) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                (*self._command, *arguments),
                # Away from the user's freehold.toml, which is not meant for the demo.
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(slot,),
                # Ctrl-C is for the manager, which then drains its workers.
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    @property
    def alive(self) -> list[int]:
        return [process.pid for process in self._processes if process.poll() is None]

    def send(self, pid: int, number: signal.Signals) -> None:
        """Signals only processes of the demo that are still running."""
        for process in self._processes:
            if process.pid == pid:
                process.send_signal(number)

    def kill_remaining(self) -> None:
        """Kills the processes that are still running."""
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def log_tail(self) -> str:
        text = self._log.read_text(errors="replace") if self._log.exists() else ""
        return "\n".join(text.splitlines()[-_LOG_LINES:])


def _own_environment() -> dict[str, str]:
    """The environment without the user's Freehold settings, and with absolute import paths."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("FREEHOLD_") and name != "DATABASE_URL"
    }
    if paths := kept.get("PYTHONPATH"):
        kept["PYTHONPATH"] = os.pathsep.join(
            str(Path(p).resolve()) for p in paths.split(os.pathsep)
        )
    return kept
