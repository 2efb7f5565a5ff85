"""The parts of `scripts/chaos --patroni` that need neither Patroni nor a server."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from freehold.lab.checker.record import Record
from tests.chaos import cluster
from tests.chaos.__main__ import main
from tests.chaos.judge import _end_of_longest_gap
from tests.chaos.numbers import lost_jobs, numbers_given_twice
from tests.chaos.plan import CLUSTER_FAULTS, Plan, on_cluster


def responded(call: str, *results: tuple[int, bool]) -> Record:
    return Record(
        1, "p1", "responded", 0, 0, 0, call, {"results": [list(each) for each in results]}
    )


def started(job: int, token: int, owner: str) -> Record:
    return Record(1, owner, "started", job, token, 1, "", {"owner": owner})


def test_numbers_that_are_given_once_are_no_violation() -> None:
    records = [
        responded("a", (1, True), (2, True)),
        responded("b", (2, False)),  # found by its key
        started(1, 7, "w1"),
        started(2, 7, "w1"),
        started(1, 8, "w2"),
    ]
    assert list(numbers_given_twice(records)) == []
    assert lost_jobs(records, [2]) == 1


@pytest.mark.parametrize(
    ("records", "text"),
    [
        (
            [responded("a", (1, True)), responded("b", (1, True))],
            "id 1 was given to a.0 and to b.0",
        ),
        ([started(1, 7, "w1"), started(2, 7, "w2")], "token 7 was given to w1 and to w2"),
        ([started(1, 7, "w1"), started(1, 7, "w1")], "job 1 was started twice with token 7"),
    ],
)
def test_a_number_that_is_given_twice_is_found(records: list[Record], text: str) -> None:
    assert list(numbers_given_twice(records)) == [text]


def test_the_first_job_after_a_fault_ends_the_longest_standstill() -> None:
    times = [90, 101, 102, 140, 141, 160, 500]
    assert _end_of_longest_gap(times, at=100, until=170) == 500  # nothing until after the fault
    assert _end_of_longest_gap(times, at=100, until=150) == 140
    assert _end_of_longest_gap([90], at=100, until=150) == 150


def test_an_asynchronous_cluster_has_lagging_crashes_only(tmp_path: Path) -> None:
    plan = Plan(store="postgres", seconds=60.0, seed=1, folder=tmp_path)
    assert (
        on_cluster(plan, 30.0, asynchronous=False, calm=False).faults.keys()
        == CLUSTER_FAULTS.keys()
    )
    assert [*on_cluster(plan, 30.0, asynchronous=True, calm=False).faults] == ["lagging_crash"]


def test_missing_programs_are_named_with_their_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_PATRONI", Path("/nowhere"))
    monkeypatch.setenv("PATH", "/nowhere")
    result = CliRunner().invoke(main, ["--patroni"])
    assert result.exit_code == 1
    assert "apt-get install etcd-server" in result.output
    assert "/nowhere/bin/pip install 'patroni[etcd3,psycopg3]'" in result.output


def test_options_that_do_not_fit_are_refused() -> None:
    for options in (["--asynchronous"], ["--patroni", "--store", "sqlite"]):
        assert CliRunner().invoke(main, options).exit_code == 2
