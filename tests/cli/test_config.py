"""`freehold config`: every setting and where it comes from, and no secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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


def test_queues_limits_shards_and_tenants_of_the_file_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "freehold.toml").write_text(
        '[queues.mail]\nweight = 5\nmax = 7\n[limits."github:*"]\nrate = "100/min"\n'
        '[shards]\neast = "postgresql://ann:xyzzy@east/jobs"\n'
        "[tenants.acme]\nmax_count = 4\n"
    )
    rows = {line.split()[0]: line for line in run("config").out.splitlines()}
    assert "weight 5, 7 at a time" in rows["queues.mail"]
    assert rows["queues.mail"].endswith("freehold.toml:1")
    assert "100/60s starts" in rows["limits.github:*"]
    assert "postgresql://ann@east/jobs" in rows["shards.east"]
    assert "1 to 4 workers of its own" in rows["tenants.acme"]
    assert rows["tenants.acme"].endswith("freehold.toml:8")
    document = run("config", "--json").json
    assert document["tenants"] == {"acme": {"default_count": 1, "max_count": 4}}
    assert document["queues"]["mail"]["limit"]["max_leases"] == 7
    assert document["limits"]["github:*"]["rate"] == {"starts": 100, "seconds": 60.0}
    assert "xyzzy" not in str(rows) + str(document)


def test_the_app_can_stand_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "freehold.toml").write_text('app = "shop:app"\n')
    (tmp_path / "shop.py").write_text(
        "from freehold import Freehold\n"
        "app = Freehold('shop.db')\n"
        "@app.task\n"
        "def send(n: int) -> None: ...\n"
    )
    assert spawn("enqueue", "shop.send", "n=1", cwd=tmp_path).code == 0
    assert (tmp_path / "shop.db").exists()
    result = spawn("worker", "--until-idle", cwd=tmp_path)
    assert result.code == 0
    assert "no --app" not in result.err
    assert "succeeded" in spawn("jobs", cwd=tmp_path).out
    bad = spawn("jobs", cwd=tmp_path, env={"FREEHOLD_APP": "other:app"})
    assert "there is no module other" in bad.err


def test_the_table_has_a_rule_under_its_head() -> None:
    head, rule, *_ = run("config").out.splitlines()
    assert head.split() == ["setting", "value", "from"]
    assert set(rule) == {"─"}
