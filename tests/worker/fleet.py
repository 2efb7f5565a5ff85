"""Worker processes as a machine would run them, and functions that wait for their effects."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from freehold.app import Freehold
from freehold.model.history import EventKind
from freehold.model.job import Job
from freehold.model.state import State
from freehold.store.types import JobFilter
from tests.processes import arguments_of, with_open_files
from tests.worker.handler_record import RECORD_VARIABLE, Record
from tests.worker.lifeline import LIFELINE_VARIABLE

ROOT = Path(__file__).parents[2]
T = TypeVar("T")
#: A limit for hangs, also on a machine with busy processors: no wait should take that long.
TIMEOUT_SECONDS = 120.0
#: Polls are frequent at first, then rarer: on two cores they take time from the workers.
_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.1
#: Events after which a job may start once more.
_CAUSES = frozenset(
    {
        EventKind.RETRIED,
        EventKind.LEASE_LOST,
        EventKind.SNOOZED,
        EventKind.DRAINED,
        EventKind.PAUSED,
        EventKind.RESUMED,
        EventKind.RETRIED_BY_HAND,
    }
)


def eventually(condition: Callable[[], T], seconds: float = TIMEOUT_SECONDS) -> T:
    """Polls until the condition is true. Returns its value."""
    deadline = time.monotonic() + seconds
    pause = _FIRST_PAUSE_SECONDS
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not true within {seconds:g} s"
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)
    return value


class WorkerProcess:
    """One `freehold worker`, in a process group of its own."""

    def __init__(
        self,
        arguments: list[str],
        environment: Mapping[str, str],
        log: Path,
        folder: Path = ROOT,
        open_files: int | None = None,
    ) -> None:
        self._log = log
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                with_open_files(
                    open_files, [sys.executable, "-m", "freehold", "worker", *arguments]
                ),
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,  # see lifeline
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self.pid = self._process.pid

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def until_ready(self) -> WorkerProcess:
        eventually(lambda: " starts: " in self.log or not self.is_alive)
        assert self.is_alive, self.log
        return self

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def send_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def ended(self, seconds: float = TIMEOUT_SECONDS) -> int:
        """Waits for its end. Returns the exit code."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still runs after {seconds:g} s:\n{self.log}") from None

    def drain(self, seconds: float = TIMEOUT_SECONDS) -> int:
        self.send(signal.SIGTERM)
        return self.ended(seconds)

    def group(self) -> list[str]:
        """The processes of its group that live, itself included."""
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return []
        return arguments_of(self.pid)

    def close_lifeline(self) -> None:
        """Close the lifeline, as the death of this process would."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def destroy(self) -> None:
        self.send_group(signal.SIGKILL)
        self._process.communicate()
        eventually(lambda: not self.group())


class Fleet:
    """The workers of one test, their app, and the record that their handlers write."""

    def __init__(self, app: Freehold, url: str, folder: Path) -> None:
        self.app = app
        self.url = url
        self.is_postgres = url.startswith("postgres")
        self.folder = folder
        self.record = Record(folder / "record")
        self.workers: list[WorkerProcess] = []

    def start(
        self,
        *arguments: str,
        lease: float = 1.0,
        app: str = "app",
        environment: Mapping[str, str] | None = None,
        folder: Path = ROOT,
        open_files: int | None = None,
    ) -> WorkerProcess:
        """``folder``: the worker's current folder, where its freehold.toml is read."""
        log = self.folder / f"worker-{len(self.workers) + 1}.log"
        command = ["--app", f"tests.worker.fleet_app:{app}", "--lease-timeout-seconds", str(lease)]
        env = {
            **os.environ,
            "FREEHOLD_URL": self.url,
            "PYTHONPATH": str(ROOT),
            RECORD_VARIABLE: str(self.record.path),
            LIFELINE_VARIABLE: "stdin",
            **(environment or {}),
        }
        worker = WorkerProcess([*command, *arguments], env, log, folder, open_files)
        self.workers.append(worker)
        return worker

    @property
    def log(self) -> str:
        return "".join(worker.log for worker in self.workers)

    # -- reading and waiting -----------------------------------------------------------------

    def job(self, job_id: int) -> Job:
        return self.app._client.store.read([job_id])[job_id]

    def state(self, job_id: int) -> State:
        return self.job(job_id).state

    def until(self, job_id: int, *states: State, seconds: float = TIMEOUT_SECONDS) -> Job:
        eventually(lambda: self.state(job_id) in states, seconds)
        return self.job(job_id)

    def succeeded(self, job_id: int, seconds: float = TIMEOUT_SECONDS) -> Job:
        return self.until(job_id, State.SUCCEEDED, seconds=seconds)

    def started(self, job_id: int, times: int = 1, seconds: float = TIMEOUT_SECONDS) -> int:
        """Waits for a start. Returns the pid of the last one."""
        eventually(lambda: len(self.record.starts(job_id)) >= times, seconds)
        return self.record.starts(job_id)[-1].pid

    def events(self, job_id: int) -> list[EventKind]:
        return [event.kind for event in self.app._client.store.events(job_id)]

    def worker_of(self, pid: int) -> WorkerProcess:
        return next(worker for worker in self.workers if worker.pid == pid)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Run SQL past the store; `{s}` stands for the schema's prefix."""
        if self.is_postgres:
            with psycopg.connect(self.url, autocommit=True) as postgres:
                cursor = postgres.execute(statement.replace("{s}", "freehold.").encode())
                return cursor.fetchall() if cursor.description else []
        with closing(sqlite3.connect(self.url)) as sqlite, sqlite:
            return sqlite.execute(statement.replace("{s}", "")).fetchall()

    # -- checks ------------------------------------------------------------------------------

    def nothing_leased(self) -> bool:
        return self.app._client.store.counts().leased == 0

    def every_second_start_has_a_cause(self) -> None:
        """I4, over everything that was ever enqueued."""
        for job in self.app._client.store.page(JobFilter(limit=1000)).jobs:
            starts = self.record.starts(job.id)
            causes = [kind for kind in self.events(job.id) if kind in _CAUSES]
            assert len(starts) <= 1 + len(causes), (job.id, starts, causes)
            tokens = [start.token for start in starts]
            assert tokens == sorted(set(tokens)), (job.id, tokens)

    def close(self) -> None:
        for worker in self.workers:
            worker.destroy()
