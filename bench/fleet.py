"""The processes of a measurement: producers that return figures, workers that are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.contender import Contender
from bench.counting import Count, counts

PRODUCER_SECONDS = 600.0


class MeasurementFailed(Exception):
    """A process failed or took too long. It is listed in the results, never counted as zero."""


@dataclass(frozen=True)
class Command:
    """How a process is started; ``name`` appears in errors."""

    name: str
    words: list[str]
    env: Mapping[str, str] | None = None
    cwd: Path | None = None


def run(command: Command) -> dict[str, Any]:
    """Wait until the process ends, and return the figures in its last line of output."""
    try:
        done = subprocess.run(
            command.words,
            capture_output=True,
            text=True,
            timeout=PRODUCER_SECONDS,
            check=False,
            env=command.env,
            cwd=command.cwd,
        )
    except subprocess.TimeoutExpired as error:
        raise MeasurementFailed(f"{command.name}: not done in {PRODUCER_SECONDS:g} s") from error
    if done.returncode:
        raise MeasurementFailed(f"{command.name}: {done.stderr.strip()[-1500:]}")
    lines = done.stdout.strip().splitlines()
    return dict(json.loads(lines[-1])) if lines and lines[-1].startswith("{") else {}


class Fleet:
    """Starts the processes of contenders."""

    def __init__(self, folder: Path, node: Path | None) -> None:
        self._folder = folder
        self._node = node
        self._serial = 0

    def produce(
        self, contender: type[Contender], role: str, url: str, number: float = 0
    ) -> dict[str, Any]:
        return run(self._command(contender, role, url, number, "-"))

    def workers(self, contender: type[Contender], url: str, processes: int) -> Workers:
        self._serial += 1
        base = self._folder / f"w{self._serial}"
        return Workers(self._command(contender, "work", url, 0, str(base)), base, processes)

    def _command(
        self, contender: type[Contender], role: str, url: str, number: float, file: str
    ) -> Command:
        start = contender.command(self._node)
        return Command(
            f"{contender.name} {role}",
            [*start, role, contender.name, url, f"{number:g}", file],
        )


class Workers:
    """Worker processes that report to ``base``, from the start until `stop`."""

    def __init__(self, command: Command, base: Path, processes: int = 1) -> None:
        self._name = command.name
        self._base = base
        self._log = Path(f"{base}.log")
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            for _ in range(processes):
                self._processes.append(self._start(command))
        except BaseException:
            self.stop()
            raise

    def _start(self, command: Command) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                command.words,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=command.env,
                cwd=command.cwd,
            )

    def counts(self) -> list[Count]:
        return counts(self._base)

    def until(self, condition: Callable[[list[Count]], bool], seconds: float) -> list[Count]:
        deadline = time.monotonic() + seconds
        while True:
            found = self.counts()
            if condition(found):
                return found
            if any(process.poll() is not None for process in self._processes):
                raise MeasurementFailed(f"{self._name}: a worker died: {self._log_tail()}")
            if time.monotonic() > deadline:
                jobs = sum(each.jobs for each in found)
                raise MeasurementFailed(
                    f"{self._name}: only {jobs} jobs in {seconds:g} s: {self._log_tail()}"
                )
            time.sleep(0.02)

    def _log_tail(self) -> str:
        return self._log.read_text(errors="replace").strip()[-1500:]

    def stop(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        for process in self._processes:
            process.wait()
