"""scripts/bench works with tiny sizes, and every job finishes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tidy.sources import ROOT

SECONDS = 300


def bench(out: Path, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "bench", *arguments, "--quick", "--out", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(out.read_text()))


def test_the_reads_of_operators_are_measured(postgres_url: str, tmp_path: Path) -> None:
    found = bench(tmp_path / "reads.json", "reads", "--dsn", postgres_url)
    assert {"queues", "findings", "explain of 50"} <= set(found["reads"])
    assert all(row["buffers"] > 0 for row in found["reads"].values())


@pytest.mark.requirement("N5")
def test_callers_that_wait_for_results_are_measured(postgres_url: str, tmp_path: Path) -> None:
    found = bench(tmp_path / "results.json", "results", "--dsn", postgres_url)
    assert found["ends"] == 10
    assert found["statements_per_second"] > 0
    assert 0 < found["delay_p50_ms"] <= found["delay_p95_ms"]


def test_members_and_followers_of_flows_are_measured(postgres_url: str, tmp_path: Path) -> None:
    found = bench(tmp_path / "flows.json", "flows", "--dsn", postgres_url, "--members", "200")
    assert found["failures"] == []
    medians = found["medians"]
    assert found["sizes"] == {"members": 200, "map": 400, "edges": 400}
    # With the job that a producer stores before it measures, and the one that follows.
    counts = {name: measured["jobs"] for name, measured in medians.items()}
    assert counts == {"plain": 201, "batch": 202, "map": 402, "edges": 42}
    assert medians["plain"]["flow_statements"].get("calls", 0) == 0
    for name in ("batch", "map", "edges"):
        assert 0 < medians[name]["follower_ms"] < 1000 * medians[name]["all_seconds"]
        assert medians[name]["rows_read"]["flow"] > 0
    assert medians["edges"]["rows_written"]["flow_edge"] == 400 + 20


@pytest.mark.long_form
@pytest.mark.parametrize("contenders", [["raw-sql"], ["raw-sql", "freehold-sqlite"]], ids=len)
def test_contenders_are_measured_and_a_missing_one_is_named(
    postgres_url: str, tmp_path: Path, contenders: list[str]
) -> None:
    found = bench(
        tmp_path / "core.json",
        "core",
        "--dsn",
        postgres_url,
        "--jobs",
        "300",
        "--only",
        ",".join([*contenders, "graphile"]),
    )
    assert found["absent"] == {"graphile": "graphile-worker is not installed"}
    assert found["failures"] == []
    assert set(found["medians"]) == set(contenders)
    for name, measured in found["medians"].items():
        assert measured["one"]["rate"] > 0
        assert measured["bulk"]["rate"] > 0
        assert 0 < measured["latency"]["p50"] <= measured["latency"]["p99"]
        for drain in (measured["drain1"], measured["drain2"]):
            assert (drain["jobs"], drain["started"], drain["unfinished"]) == (301, 301, 0)
            assert drain["rate"] > 0
            assert drain["cpu_us"] > 0
            assert (name == "freehold-sqlite") or drain["wal_bytes"] > 0
    assert {"fsync", "synchronous_commit", "shared_buffers"} <= set(found["server"]["settings"])
    assert {"date", "machine", "versions", "load_average", "round_count"} <= set(found)


@pytest.mark.parametrize(
    ("kind", "cases"),
    [
        ("growth", ["clean", "held snapshot", "behind a failed head"]),
        ("wide", ["clean", "payload 1 KiB", "3 tenants"]),
    ],
)
@pytest.mark.long_form
def test_growth_is_measured_against_a_clean_store(
    postgres_url: str, tmp_path: Path, kind: str, cases: list[str]
) -> None:
    found = bench(
        tmp_path / "growth.json",
        kind,
        "--dsn",
        postgres_url,
        "--jobs",
        "300",
        "--only",
        ",".join(cases),
    )
    assert found["failures"] == []
    assert list(found["medians"]) == cases
    for measured in found["medians"].values():
        assert (measured["jobs"], measured["started"]) == (300, 300)
        assert measured["buffers"] > 0
        assert measured["wal_bytes"] > 0


@pytest.mark.long_form
def test_notifications_are_measured_with_and_without(postgres_url: str, tmp_path: Path) -> None:
    found = bench(tmp_path / "wake.json", "wake", "--dsn", postgres_url, "--clients", "2")
    assert found["failures"] == []
    assert all(measured["rate"] > 0 for measured in found["medians"].values())
    assert set(found["medians"]) == {"with wake-ups", "without"}


def test_jobs_that_differ_and_jobs_that_fail_are_measured(
    postgres_url: str, tmp_path: Path
) -> None:
    found = bench(
        tmp_path / "mixed.json",
        "mixed",
        "--dsn",
        postgres_url,
        "--jobs",
        "300",
        "--only",
        "freehold,freehold-sqlite",
    )
    assert found["failures"] == []
    assert list(found["medians"]) == ["freehold", "freehold-sqlite"]
    for measured in found["medians"].values():
        assert measured["bulk"]["rate"] > 0
        for drain in (measured["steady"], measured["retried"]):
            assert (drain["jobs"], drain["started"], drain["unfinished"]) == (301, 301, 0)
            assert drain["rate"] > 0
