"""`freehold workers`: the live workers."""

from __future__ import annotations

import pytest

from freehold.model.worker_info import Heartbeat, WorkerState
from tests.cli.shell import Shell


def send_heartbeat(shell: Shell, owner: str, state: WorkerState = WorkerState.WORKING) -> None:
    heartbeat = Heartbeat(
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
    shell.store.store.heartbeat(heartbeat, 30.0)


@pytest.mark.requirement("S2.11")
def test_workers_are_listed_with_their_slots(shell: Shell) -> None:
    send_heartbeat(shell, "w1")
    send_heartbeat(shell, "w2", WorkerState.STUCK)
    result = shell("workers")
    assert result.code == 0
    heading, _, first, second = result.out.splitlines()
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
    for text in ("w1", "4711", "working", "default, mail", "3/10", "12", "now"):
        assert text in first
    assert "stuck" in second
    assert "\x1b" not in result.out


def test_workers_as_json(shell: Shell) -> None:
    send_heartbeat(shell, "w1")
    (worker,) = shell("workers", "--json").json["workers"]
    assert (worker["owner"], worker["state"], worker["queues"]) == (
        "w1",
        "working",
        ["default", "mail"],
    )
    assert (worker["running"], worker["concurrency"], worker["manager"]) == (3, 10, "m1")


def test_an_empty_list_of_workers(shell: Shell) -> None:
    assert shell("workers").out == "no workers\n"
    assert shell("workers", "--json").json == {"workers": []}
