"""`freehold config`: every setting and where it comes from, and no secret."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.shell import run, spawn

DIGEST = "ab" * 32


def test_tokens_are_shown_without_their_digest() -> None:
    tokens = f"viewer:sha256:{DIGEST},operator:env:TOKEN"
    for arguments in (("config",), ("config", "--json")):
        result = run(*arguments, env={"FREEHOLD_HTTP_TOKENS": tokens})
        assert result.code == 0
        assert DIGEST not in result.out
        assert "viewer:sha256:…" in result.out
        assert "operator:env:TOKEN" in result.out


def test_a_mistyped_variable_is_reported_and_ignored() -> None:
    result = run("config", "--json", env={"FREEHOLD_WORKER_CONCURRENCY": "99"})
    assert result.code == 0
    assert result.err == (
        "freehold: FREEHOLD_WORKER_CONCURRENCY is an unknown setting and is ignored: "
        "did you mean FREEHOLD_WORKERS_CONCURRENCY?\n"
    )
    assert "99" not in result.out


def test_a_worker_logs_a_mistyped_variable(tmp_path: Path) -> None:
    env = {"FREEHOLD_LEASE_TIMEOUT_SECONDS": "5", "FREEHOLD_URL": str(tmp_path / "jobs.db")}
    result = spawn("worker", "--until-idle", "--log-format", "json", cwd=tmp_path, env=env)
    assert result.code == 0
    messages = [json.loads(line)["message"] for line in result.err.splitlines()]
    meant = "did you mean FREEHOLD_WORKERS_LEASE_TIMEOUT_SECONDS?"
    assert [message for message in messages if meant in message]


def test_the_table_has_a_rule_under_its_head() -> None:
    head, rule, *_ = run("config").out.splitlines()
    assert head.split() == ["setting", "value", "from"]
    assert set(rule) == {"─"}
