"""`freehold up` in a process of its own, and a view of its worker processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from freehold.app import Freehold
from freehold.model.state import State
from freehold.model.worker_info import LiveWorker
from freehold.store.types import JobFilter
from tests.processes import WITHOUT_UVLOOP, pids_with, with_open_files
from tests.worker.fleet import TIMEOUT_SECONDS, eventually
from tests.worker.handler_record import RECORD_VARIABLE, Record

ROOT = Path(__file__).parents[2]


class Up:
    """One manager process."""

    def __init__(
        self,
        arguments: list[str],
        environment: Mapping[str, str],
        log: Path,
        at: Path,
        open_files: int | None = None,
        uvloop: bool = True,
    ) -> None:
        self.log_file = log
        program = ["-m", "freehold"] if uvloop else ["-c", WITHOUT_UVLOOP]
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                with_open_files(
                    open_files,
                    [sys.executable, *program, "up", "--log-format", "json", *arguments],
                ),
                cwd=at,
                env=environment,
                stdin=subprocess.PIPE,  # see load_app
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self.pid = self._process.pid

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def ended(self, seconds: float = TIMEOUT_SECONDS) -> int:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running:\n{self.log_file.read_text()}") from None
        finally:
            assert self._process.stdin is not None
            if self._process.poll() is not None:
                self._process.stdin.close()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None


class Service:
    """Managers of one store, one after another, and their workers."""

    def __init__(self, app: Freehold, url: str, folder: Path) -> None:
        self.app = app
        self.url = url
        self.folder = folder
        self.record = Record(folder / "record")
        self.log_file = folder / "service.log"
        self.environment = {
            "FREEHOLD_HTTP_PORT": "0",  # any free one
            **os.environ,
            "FREEHOLD_URL": url,
            "FREEHOLD_APP": "tests.manager.load_app:app",
            "FREEHOLD_WORKERS_SCALE_INTERVAL_MS": "100",
            "FREEHOLD_WORKERS_SCALE_COOLDOWN_SECONDS": "1.5",
            "FREEHOLD_WORKERS_LEASE_TIMEOUT_SECONDS": "2",
            "FREEHOLD_WORKERS_CONCURRENCY": "2",
            # The folder of process slots and of the API's token; each test has its own.
            "XDG_RUNTIME_DIR": str(folder),
            "TMPDIR": str(folder),
            RECORD_VARIABLE: str(self.record.path),
        }
        self._ups: list[Up] = []

    def up(
        self,
        *arguments: str,
        at: Path = ROOT,
        open_files: int | None = None,
        uvloop: bool = True,
        **environment: str,
    ) -> Up:
        environment = {**self.environment, **environment}
        up = Up(list(arguments), environment, self.log_file, at, open_files, uvloop)
        self._ups.append(up)
        return up

    def log_text(self) -> str:
        return self.log_file.read_text() if self.log_file.exists() else ""

    # -- reading -----------------------------------------------------------------------------

    def worker_pids(self) -> list[int]:
        """All live workers, as the operating system lists them."""
        return pids_with(f"--managed-in\0{self.folder}/".encode())

    def until_workers(self, count: int, seconds: float = TIMEOUT_SECONDS) -> list[int]:
        eventually(lambda: len(self.worker_pids()) == count, seconds)
        return self.worker_pids()

    def registered(self) -> list[LiveWorker]:
        return self.app.operator.workers()

    def until_registered(self, count: int) -> list[LiveWorker]:
        eventually(lambda: len(self.registered()) == count)
        return self.registered()

    def logged(self, text: str) -> list[dict[str, Any]]:
        """The log lines with this text, but for a line that was cut by a kill."""
        found = []
        for line in self.log_file.read_text(errors="replace").splitlines():
            if text in line:
                with contextlib.suppress(json.JSONDecodeError):
                    found.append(json.loads(line))
        return found

    def all_succeeded(self, ids: list[int]) -> bool:
        jobs = self.app._client.store.read(ids)
        return len(jobs) == len(ids) and all(j.state is State.SUCCEEDED for j in jobs.values())

    def nothing_was_interrupted(self, ids: list[int]) -> None:
        """Every job started once, ended in the same worker, and has no events."""
        for job_id in ids:
            assert self.record.steps(job_id) == ["start", "end"], job_id
            assert self.app._client.store.events(job_id) == [], job_id

    def unfinished(self) -> int:
        live = frozenset({State.QUEUED, State.ASSIGNED, State.RUNNING})
        return len(self.app._client.store.page(JobFilter(states=live, limit=1000)).jobs)

    def close(self) -> None:
        for up in self._ups:
            up.kill()
        for pid in self.worker_pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        eventually(lambda: not self.worker_pids())


class WorkerCount:
    """Counts the live workers in a thread of the test."""

    def __init__(self, service: Service, every_seconds: float = 0.02) -> None:
        self._service = service
        self._every = every_seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._count)
        self.checks = 0
        self.maximum = 0
        #: (time, count) of each change of the number.
        self.changes: list[tuple[float, int]] = []

    def __enter__(self) -> WorkerCount:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _count(self) -> None:
        while not self._stopped.wait(self._every):
            count = len(self._service.worker_pids())
            self.checks += 1
            self.maximum = max(self.maximum, count)
            if not self.changes or self.changes[-1][1] != count:
                self.changes.append((time.monotonic(), count))
