"""Examples of the folder `examples`, run by workers that a test can kill."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.worker.fleet import ROOT, WorkerProcess, eventually
from tests.worker.lifeline import LIFELINE_VARIABLE

EXAMPLES = ROOT / "examples"


class Example:
    """A module of the examples, imported here too, and its workers."""

    def __init__(self, folder: str, name: str, url: str, logs: Path) -> None:
        self._name = name
        self._env = {
            **os.environ,
            "FREEHOLD_URL": url,
            "PYTHONPATH": str(EXAMPLES / folder),
            LIFELINE_VARIABLE: "stdin",
        }
        self._logs = logs
        self._workers: list[WorkerProcess] = []
        self.module: Any = import_module(name)
        self.module.app.url = url
        self.module.app.migrate()

    def start(self, **environment: str) -> WorkerProcess:
        log = self._logs / f"worker-{len(self._workers)}.log"
        arguments = ["--app", f"{self._name}:app", "--lease-timeout-seconds", "2"]
        self._workers.append(
            WorkerProcess(arguments, {**self._env, **environment}, log, self._logs)
        )
        return self._workers[-1]

    def kill(self, worker: WorkerProcess, at: Callable[[], object]) -> None:
        """As soon as the condition is true."""
        eventually(at)
        worker.send(signal.SIGKILL)
        assert worker.ended() == -signal.SIGKILL

    def killed_at(self, line: str, **environment: str) -> None:
        """A worker that is killed as soon as it has printed this line."""
        worker = self.start(**environment)
        self.kill(worker, at=lambda: line in worker.log)

    def printed(self, word: str) -> list[str]:
        """The lines of all workers that begin with this word."""
        lines = [line for worker in self._workers for line in worker.log.splitlines()]
        return [line for line in lines if line.startswith(f"{word} ")]

    def close(self) -> None:
        for worker in self._workers:
            worker.destroy()
        self.module.app.close()


#: Opens an example by its folder and its module.
Open = Callable[[str, str], Example]


def opened_examples(
    url: Callable[[], str], logs: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Open]:
    opened: list[Example] = []
    monkeypatch.delenv("FREEHOLD_URL", raising=False)

    def open_example(folder: str, name: str) -> Example:
        monkeypatch.syspath_prepend(EXAMPLES / folder)
        opened.append(Example(folder, name, url(), logs))
        return opened[-1]

    yield open_example
    for each in opened:
        each.close()
        del sys.modules[each.module.__name__]
