"""Processes of one side: producers that answer, workers that are watched and killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.counting import Count, counts
from bench.sides.side import Side

PRODUCER_SECONDS = 600.0
START_SECONDS = 60.0


class Trouble(Exception):
    """A side did not do what it was asked; told with the results, and never taken for a zero."""


class Fleet:
    """Starts and ends the processes of a run. They end with it, whatever happens."""

    def __init__(self, folder: Path, node: Path | None) -> None:
        self._folder = folder
        self._node = node
        self._serial = 0

    def ask(self, side: type[Side], role: str, url: str, number: float = 0) -> dict[str, Any]:
        """A process that ends by itself, and what it answered."""
        done = subprocess.run(
            self._command(side, role, url, number, "-"),
            capture_output=True,
            text=True,
            timeout=PRODUCER_SECONDS,
            check=False,
        )
        if done.returncode:
            raise Trouble(f"{side.name} {role}: {done.stderr.strip()[-1500:]}")
        lines = done.stdout.strip().splitlines()
        return dict(json.loads(lines[-1])) if lines and lines[-1].startswith("{") else {}

    def workers(self, side: type[Side], url: str, processes: int) -> Workers:
        self._serial += 1
        base = self._folder / f"w{self._serial}"
        commands = [self._command(side, "work", url, 0, str(base))] * processes
        return Workers(side.name, base, commands)

    def _command(
        self, side: type[Side], role: str, url: str, number: float, file: str
    ) -> list[str]:
        return [*side.command(self._node), role, side.name, url, f"{number:g}", file]


class Workers:
    """Some workers, until `stop`."""

    def __init__(self, name: str, base: Path, commands: list[list[str]]) -> None:
        self._name = name
        self._base = base
        self._log = Path(f"{base}.log")
        with self._log.open("wb") as log:
            self._processes = [
                subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
                for command in commands
            ]

    def counts(self) -> list[Count]:
        return counts(self._base)

    def until(self, condition: Callable[[list[Count]], bool], seconds: float) -> list[Count]:
        deadline = time.monotonic() + seconds
        while True:
            found = self.counts()
            if condition(found):
                return found
            if any(process.poll() is not None for process in self._processes):
                raise Trouble(f"{self._name}: a worker died: {self._said()}")
            if time.monotonic() > deadline:
                jobs = sum(each.jobs for each in found)
                raise Trouble(f"{self._name}: only {jobs} jobs in {seconds:g} s: {self._said()}")
            time.sleep(0.02)

    def _said(self) -> str:
        return self._log.read_text(errors="replace").strip()[-1500:]

    def stop(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        for process in self._processes:
            process.wait()
