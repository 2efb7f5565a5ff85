"""The demo's worker processes: as a manager starts them, but known by name, so that one of them
can be killed, and none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from freehold.lab.demo.handler_log import VARIABLE
from freehold.lab.demo.load import QUEUES

LEASE_SECONDS = 3.0
GRACE_SECONDS = 5.0
_LOG_LINES = 20


class WorkerProcesses:
    """Everybody whom the manager has started."""

    def __init__(self, folder: Path, url: str, schema: str, concurrency: int) -> None:
        self.record = folder / "record"
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
            "--lease-seconds",
            str(LEASE_SECONDS),
            "--grace-seconds",
            str(GRACE_SECONDS),
            *(f"--queue={queue}" for queue in QUEUES),
        ]
        self._environment = _own_environment() | {
            "FREEHOLD_URL": url,
            "FREEHOLD_SCHEMA": schema,
            VARIABLE: str(self.record),
        }
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, more: Sequence[str], seat: int) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                (*self._command, *more),
                # A freehold.toml of whoever watches is not meant for the demo.
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(seat,),
                # Ctrl-C is for the manager, which then drains its workers.
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    @property
    def alive(self) -> list[int]:
        return [process.pid for process in self._processes if process.poll() is None]

    def send(self, pid: int, number: signal.Signals) -> None:
        """Only to those whom we have started, and while they live."""
        for process in self._processes:
            if process.pid == pid:
                process.send_signal(number)

    def leave_nobody(self) -> None:
        """Whoever has not ended by now, is ended."""
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def log_tail(self) -> str:
        text = self._log.read_text(errors="replace") if self._log.exists() else ""
        return "\n".join(text.splitlines()[-_LOG_LINES:])


def _own_environment() -> dict[str, str]:
    """Without settings that are meant for another store, and with paths that hold anywhere."""
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
