"""`freehold config`: every setting with where it came from, and no secret."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.shell import run, spawn

DIGEST = "ab" * 32


def test_tokens_are_shown_without_their_digest() -> None:
    tokens = f"viewer:sha256:{DIGEST},operator:env:TOKEN"
    for arguments in (("config",), ("config", "--json")):
        said = run(*arguments, env={"FREEHOLD_HTTP_TOKENS": tokens})
        assert said.code == 0
        assert DIGEST not in said.out
        assert "viewer:sha256:…" in said.out
        assert "operator:env:TOKEN" in said.out


def test_a_mistyped_variable_is_told_and_changes_nothing() -> None:
    said = run("config", "--json", env={"FREEHOLD_WORKER_CONCURRENCY": "99"})
    assert said.code == 0
    assert said.err == (
        "freehold: FREEHOLD_WORKER_CONCURRENCY is no setting and is left aside: "
        "did you mean FREEHOLD_WORKERS_CONCURRENCY?\n"
    )
    assert "99" not in said.out


def test_a_worker_tells_it_to_its_log(tmp_path: Path) -> None:
    env = {"FREEHOLD_LEASE_TIMEOUT_SECONDS": "5", "FREEHOLD_URL": str(tmp_path / "jobs.db")}
    said = spawn("worker", "--until-idle", "--log-format", "json", cwd=tmp_path, env=env)
    assert said.code == 0
    told = [json.loads(line)["message"] for line in said.err.splitlines()]
    meant = "did you mean FREEHOLD_WORKERS_LEASE_TIMEOUT_SECONDS?"
    assert [line for line in told if meant in line]
