"""`freehold workers`: who is at work."""

from __future__ import annotations

import pytest

from freehold.model.worker_info import Heartbeat, WorkerState
from tests.cli.shell import Shell


def beat(shell: Shell, owner: str, state: WorkerState = WorkerState.WORKING) -> None:
    word = Heartbeat(
        owner=owner,
        host="box\x1b[31m",
        pid=4711,
        concurrency=10,
        running=3,
        finished=12,
        queues=("default", "mail"),
        tasks=("send",),
        version="1",
        state=state,
        manager="m1",
    )
    shell.store.store.beat(word, 30.0)


@pytest.mark.requirement("S2.11")
def test_workers_are_listed_with_what_they_have_in_hand(shell: Shell) -> None:
    beat(shell, "w1")
    beat(shell, "w2", WorkerState.STUCK)
    said = shell("workers")
    assert said.code == 0
    heading, _, first, second = said.out.splitlines()
    assert heading.split() == [
        "worker",
        "host",
        "pid",
        "state",
        "queues",
        "slots",
        "ended",
        "since",
        "seen",
    ]
    for word in ("w1", "4711", "working", "default, mail", "3/10", "12", "now"):
        assert word in first
    assert "stuck" in second
    assert "\x1b" not in said.out


def test_workers_as_json(shell: Shell) -> None:
    beat(shell, "w1")
    (worker,) = shell("workers", "--json").json["workers"]
    assert (worker["owner"], worker["state"], worker["queues"]) == (
        "w1",
        "working",
        ["default", "mail"],
    )
    assert (worker["running"], worker["concurrency"], worker["manager"]) == (3, 10, "m1")


def test_no_workers_are_said_to_be_none(shell: Shell) -> None:
    assert shell("workers").out == "no workers\n"
    assert shell("workers", "--json").json == {"workers": []}
