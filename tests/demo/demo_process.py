"""`freehold demo` in its own process, and the worker processes that it leaves."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from freehold.app import Freehold
from freehold.lab.commands.demo import SCHEMA
from freehold.model.job import Job
from freehold.store.types import JobFilter
from tests.cli.shell import environment
from tests.processes import pids_with

#: The demo ends within a minute, on a machine that does nothing else.
TIMEOUT_SECONDS = 200.0


class DemoProcess:
    """One run. It has its own folder for temporary files, which also identifies its workers."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self._out = folder / "out"
        with self._out.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "freehold", "demo", *arguments],
                cwd=folder,
                env=environment({"TMPDIR": str(folder), "XDG_RUNTIME_DIR": str(folder)}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self._out.read_text(encoding="utf-8")

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        try:
            return self._process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still runs:\n{self.output}") from None

    def worker_pids(self) -> list[int]:
        """From the process list of the machine."""
        return pids_with(f"--managed-in\0{self.folder}/".encode())

    def leaves_nothing(self) -> bool:
        return not self.worker_pids() and not list(self.folder.glob("freehold-demo-*"))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pid in self.worker_pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def store_of(url: str) -> Iterator[Freehold]:
    app = Freehold(url, schema=SCHEMA)
    try:
        yield app
    finally:
        app.close()


def jobs_of(app: Freehold) -> tuple[Job, ...]:
    return app.operator.jobs(JobFilter(limit=1000)).jobs
