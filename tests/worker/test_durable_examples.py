"""The examples of durable handlers: a worker is killed in the middle, and another one goes on."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from freehold.model.state import State
from freehold.store.types import JobFilter
from tests.worker.fleet import ROOT, TIMEOUT_SECONDS, WorkerProcess, eventually
from tests.worker.lifeline import LIFELINE_VARIABLE

pytestmark = [pytest.mark.requirement("N8", "N9", "N10"), pytest.mark.either_store]
EXAMPLES = ROOT / "examples" / "durable"


class Example:
    """A module of the examples, imported here too, and its workers."""

    def __init__(self, name: str, url: str, folder: Path) -> None:
        self._name = name
        self._env = {
            **os.environ,
            "FREEHOLD_URL": url,
            "PYTHONPATH": str(EXAMPLES),
            LIFELINE_VARIABLE: "stdin",
        }
        self._folder = folder
        self._workers: list[WorkerProcess] = []
        self.module: Any = import_module(name)
        self.module.app.url = url
        self.module.app.migrate()

    def start(self, **environment: str) -> WorkerProcess:
        log = self._folder / f"worker-{len(self._workers)}.log"
        arguments = ["--app", f"{self._name}:app", "--lease-timeout-seconds", "2"]
        self._workers.append(
            WorkerProcess(arguments, {**self._env, **environment}, log, self._folder)
        )
        return self._workers[-1]

    def killed_at(self, line: str, **environment: str) -> None:
        """A worker that is killed as soon as it has printed this line."""
        worker = self.start(**environment)
        eventually(lambda: line in worker.log)
        worker.send(signal.SIGKILL)
        assert worker.ended() == -signal.SIGKILL

    def printed(self, word: str) -> list[str]:
        """The lines of all workers that begin with this word."""
        lines = [line for worker in self._workers for line in worker.log.splitlines()]
        return [line for line in lines if line.startswith(f"{word} ")]

    def close(self) -> None:
        for worker in self._workers:
            worker.destroy()
        self.module.app.close()


Open = Callable[[str], Example]


@pytest.fixture(params=["sqlite", "postgres"])
def example(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Open]:
    opened: list[Example] = []
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.delenv("FREEHOLD_URL", raising=False)

    def open_example(name: str) -> Example:
        if request.param == "sqlite":
            url = str(tmp_path / "jobs.db")
        else:
            url = request.getfixturevalue("postgres_store_url")
        opened.append(Example(name, url, tmp_path))
        return opened[-1]

    yield open_example
    for each in opened:
        each.close()
        del sys.modules[each.module.__name__]


def test_an_order_whose_worker_was_killed_is_charged_once_and_shipped(example: Open) -> None:
    shop = example("orders")
    job = shop.module.order.enqueue(7, 4200)
    shop.killed_at("pack order 7", PACK_SECONDS="600")
    shop.start(PACK_SECONDS="0")
    eventually(lambda: job.read().waits_for == "signal/shipped:7")
    assert shop.module.app.send_signal("shipped:7", shop.module.Parcel("X1"))
    assert job.result(TIMEOUT_SECONDS) == "X1, 350 g"
    assert shop.printed("charge") == ["charge order 7"]
    assert shop.printed("pack") == ["pack order 7"] * 2
    assert job.read().lost_attempts == 1
    # Its job is stored once and runs at least once: the killed worker can have printed it, too.
    (mail,) = shop.module.app.operator.jobs(JobFilter(task=shop.module.send_mail.name)).jobs
    eventually(lambda: shop.module.app.job(mail.id).read().state == State.SUCCEEDED)
    assert set(shop.printed("mail")) == {"mail for order 7: paid 4200"}


def test_an_agent_whose_worker_was_killed_repeats_only_the_call_that_ran(example: Open) -> None:
    agent = example("agent")
    job = agent.module.answer.enqueue("How long do all open tickets take?")
    agent.killed_at("tool read_ticket A-1", TOOL_SECONDS="600")
    agent.start(TOOL_SECONDS="0")
    assert job.result(TIMEOUT_SECONDS) == "16 days"
    reads = ["A-1", "A-1", "A-2", "A-3"]
    assert agent.printed("tool") == [
        "tool list_tickets open",
        *(f"tool read_ticket {name}" for name in reads),
        "tool add 3 5 8",
    ]
    assert agent.printed("model") == [f"model with {1 + 2 * n} messages" for n in range(6)]
    assert job.read().lost_attempts == 1
