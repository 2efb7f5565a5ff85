"""The demo ends by itself, tells what it saw, fails where a job is lost, and leaves nobody."""

from __future__ import annotations

import re
import signal
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from freehold.model.state import FINAL
from tests.cli.shell import run as command
from tests.demo.running import Run, jobs_of, store_of
from tests.worker.fleet import eventually


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def start(*arguments: str) -> Run:
        runs.append(Run(tmp_path, *arguments))
        return runs[-1]

    yield start
    for each in runs:
        each.close()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "given.db")
    found: str = request.getfixturevalue("postgres_url")
    return found


def row(said: str, name: str) -> str:
    found = re.search(rf"│ {re.escape(name)} +│ (.*?) +│", said)
    assert found, said
    return found[1]


def ended_well(run: Run, url: str) -> None:
    assert run.ended() == 0, run.said
    said = run.said
    assert "Nothing was lost." in said
    assert "is killed with -9; it held" in said
    assert "recovered, and queued again" in said
    assert int(row(said, "recovered from it")) >= 1
    assert row(said, "lanes that kept their order") == "2 of 2"
    assert row(said, "workers").startswith("2 → 6")
    assert row(said, "workers").endswith("→ 2")
    with store_of(url) as app:
        jobs = jobs_of(app)
    assert len(jobs) == 90
    assert all(job.state in FINAL for job in jobs)
    assert run.leaves_nothing()


@pytest.mark.requirement("S2.8", "S2.9", "S2.11")
def test_it_ends_well_with_exactly_the_jobs_that_were_asked_for(
    demo: Callable[..., Run], tmp_path: Path
) -> None:
    url = str(tmp_path / "given.db")
    ended_well(demo("--url", url, "--jobs", "90"), url)


@pytest.mark.requirement("S2.8", "S2.9", "S2.11")
def test_so_it_does_beside_what_is_in_a_given_database_which_stays_as_it_is(
    demo: Callable[..., Run], postgres_url: str
) -> None:
    assert command("migrate", "--url", postgres_url).code == 0
    assert command("enqueue", "theirs", "--url", postgres_url).code == 0
    ended_well(demo("--url", postgres_url, "--jobs", "90"), postgres_url)
    theirs = command("jobs", "--url", postgres_url, "--json").json["jobs"]
    assert [(job["task"], job["state"]) for job in theirs] == [("theirs", "queued")]


@pytest.mark.requirement("S2.1")
def test_it_fails_if_a_job_is_lost(demo: Callable[..., Run], tmp_path: Path) -> None:
    url = str(tmp_path / "given.db")
    run = demo("--url", url, "--jobs", "90")

    with store_of(url) as app:
        eventually(lambda: (tmp_path / "given.db").exists() and jobs_of(app))
        newest = max(job.id for job in jobs_of(app))
        assert app.client.store.delete([newest]) == [newest]
    assert run.ended() == 1, run.said
    assert "NOT as it should be." in run.said
    assert row(run.said, "lost") == f"1: {newest}"
    assert run.leaves_nothing()


def test_ctrl_c_leaves_no_process_behind(demo: Callable[..., Run], url: str) -> None:
    run = demo("--url", url, "--jobs", "2000")
    eventually(lambda: len(run.worker_pids()) > 2)
    run.send(signal.SIGINT)
    assert run.ended() == 130
    assert run.said.splitlines()[-1] == "freehold: interrupted"
    assert run.leaves_nothing()


def test_with_serve_it_stays_up_with_the_api(demo: Callable[..., Run], tmp_path: Path) -> None:
    url = str(tmp_path / "given.db")
    run = demo("--url", url, "--jobs", "60", "--serve", "--port", "0")
    address = eventually(lambda: re.findall(r"http://127\.0\.0\.1:\d+", run.said))[0]
    with urllib.request.urlopen(f"{address}/readyz") as answer:
        assert answer.status == 200
    said = command("enqueue", "demo.quick", "--queue", "demo-mail", "--url", url, "--json")
    with store_of(url) as app:
        more = said.json["id"]
        eventually(lambda: app.client.store.read([more])[more].state in FINAL)
    run.send(signal.SIGTERM)
    assert run.ended() == 0
    assert run.leaves_nothing()


def test_another_store_beside_its_own_makes_no_sense() -> None:
    said = command("demo", "--url", "x.db", "--postgres")
    assert said.code == 2
    assert "give one of them" in said.err
