"""The demo ends by itself, reports its result, fails if a job is lost, and leaves no process."""

from __future__ import annotations

import re
import signal
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from freehold.model.state import FINAL
from tests.cli.shell import run as command
from tests.demo.demo_process import DemoProcess, jobs_of, store_of
from tests.worker.fleet import eventually


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Callable[..., DemoProcess]]:
    runs: list[DemoProcess] = []

    def start(*arguments: str) -> DemoProcess:
        runs.append(DemoProcess(tmp_path, *arguments))
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


def row(output: str, name: str) -> str:
    found = re.search(rf"│ {re.escape(name)} +│ (.*?) +│", output)
    assert found, output
    return found[1]


def reports_success(output: str, url: str) -> None:
    assert "No job was lost." in output
    assert "with SIGKILL; it held" in output
    assert "recovered and queued again" in output
    assert int(row(output, "jobs recovered from it")) >= 1
    assert row(output, "lanes in order") == "2 of 2"
    assert row(output, "workers").startswith("2 → 6")
    assert row(output, "workers").endswith("→ 2")
    with store_of(url) as app:
        jobs = sorted(jobs_of(app), key=lambda job: job.id)[:90]  # with --serve, more follow
    assert len(jobs) == 90
    assert all(job.state in FINAL for job in jobs)


@pytest.mark.requirement("S2.8", "S2.9", "S2.11")
def test_it_succeeds_in_a_given_database_and_leaves_its_other_jobs_unchanged(
    demo: Callable[..., DemoProcess], postgres_url: str
) -> None:
    assert command("migrate", "--url", postgres_url).code == 0
    assert command("enqueue", "theirs", "--url", postgres_url).code == 0
    run = demo("--url", postgres_url, "--jobs", "90")
    assert run.wait() == 0, run.output
    reports_success(run.output, postgres_url)
    assert run.leaves_nothing()
    theirs = command("jobs", "--url", postgres_url, "--json").json["jobs"]
    assert [(job["task"], job["state"]) for job in theirs] == [("theirs", "queued")]


@pytest.mark.long_form
@pytest.mark.requirement("S2.1")
def test_it_fails_if_a_job_is_lost(demo: Callable[..., DemoProcess], tmp_path: Path) -> None:
    url = str(tmp_path / "given.db")
    run = demo("--url", url, "--jobs", "90")

    with store_of(url) as app:
        eventually(lambda: (tmp_path / "given.db").exists() and jobs_of(app))
        newest = max(job.id for job in jobs_of(app))
        assert app._client.store.delete([newest]) == [newest]
    assert run.wait() == 1, run.output
    assert "The check failed." in run.output
    assert row(run.output, "jobs lost") == f"1: {newest}"
    assert run.leaves_nothing()


@pytest.mark.either_store
def test_ctrl_c_leaves_no_process_behind(demo: Callable[..., DemoProcess], url: str) -> None:
    run = demo("--url", url, "--jobs", "2000")
    eventually(lambda: len(run.worker_pids()) > 2)
    run.send(signal.SIGINT)
    assert run.wait() == 130
    assert run.output.splitlines()[-1] == "freehold: interrupted"
    assert run.leaves_nothing()


@pytest.mark.requirement("S2.8", "S2.9", "S2.11")
def test_with_serve_it_succeeds_and_stays_up_with_the_api(
    demo: Callable[..., DemoProcess], tmp_path: Path
) -> None:
    url = str(tmp_path / "given.db")
    run = demo("--url", url, "--jobs", "90", "--serve", "--port", "0")
    address = eventually(lambda: re.findall(r"http://127\.0\.0\.1:\d+", run.output))[0]
    reports_success(run.output, url)
    with urllib.request.urlopen(f"{address}/readyz") as result:
        assert result.status == 200
    file = eventually(lambda: re.findall(r"its token +(\S+)\n", run.output))[0]
    headers = {"Authorization": f"Bearer {Path(file).read_text().strip()}"}
    request = urllib.request.Request(f"{address}/api/stats", headers=headers)
    with urllib.request.urlopen(request) as result:
        assert result.status == 200
    output = command("enqueue", "demo.quick", "--queue", "demo-mail", "--url", url, "--json")
    with store_of(url) as app:
        more = output.json["id"]
        eventually(lambda: app._client.store.read([more])[more].state in FINAL)
    run.send(signal.SIGTERM)
    assert run.wait() == 0
    assert run.leaves_nothing()


def test_url_and_postgres_exclude_each_other() -> None:
    output = command("demo", "--url", "x.db", "--postgres")
    assert output.code == 2
    assert "give one of them" in output.err
