"""Flags win over environment, file and default; unknown and invalid settings are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from freehold.errors import BadName, BadSettings
from freehold.settings import SETTING_TYPES, load, unknown_variables
from freehold.worker.config import WorkerSettings, worker_settings


@pytest.mark.requirement("S2.10")
def test_the_shipped_defaults_are_the_documented_ones(tmp_path: Path) -> None:
    settings = load(environment={}, folder=tmp_path)
    promised = {
        "default_count": 2,
        "max_count": 8,
        "poll_interval_ms": 250,
        "lease_timeout_seconds": 30,
        "scale_interval_ms": 1000,
        "shutdown_grace_seconds": 300,
        "request_poll_seconds": 2,
    }
    assert {name: getattr(settings.workers, name) for name in promised} == promised
    assert settings.workers.concurrency >= 1


def test_a_worker_without_settings_equals_the_shipped_file(tmp_path: Path) -> None:
    assert worker_settings(load(environment={}, folder=tmp_path)) == WorkerSettings()


def test_only_a_worker_that_serves_metrics_needs_the_tokens(tmp_path: Path) -> None:
    settings = load(None, {"FREEHOLD_HTTP_TOKENS": "viewer:env:MISSING_HERE"}, tmp_path)
    assert worker_settings(settings).tokens == ()
    with pytest.raises(BadSettings, match="env:MISSING_HERE is missing"):
        worker_settings(settings, metrics_port=0)


@pytest.mark.parametrize("text", ["tokens = 'local'", "tokens = ['local']"])
def test_local_access_can_be_given_as_one_word(tmp_path: Path, text: str) -> None:
    (tmp_path / "freehold.toml").write_text(f"[http]\n{text}\n")
    assert load(None, {}, tmp_path).http.tokens == ("local",)
    assert load(None, {"FREEHOLD_HTTP_TOKENS": "local"}, tmp_path).http.tokens == ("local",)


def test_each_layer_wins_over_the_one_below(tmp_path: Path) -> None:
    (tmp_path / "freehold.toml").write_text("[workers]\nconcurrency = 3\nmax_count = 9\n")
    environment = {"FREEHOLD_WORKERS_CONCURRENCY": "4"}
    flags = {"workers.max_count": 10, "workers.default_count": None}
    settings = load(flags, environment, tmp_path)
    assert settings.workers.concurrency == 4
    assert settings.workers.max_count == 10
    assert settings.workers.default_count == 2
    assert settings.origins["workers.concurrency"] == "FREEHOLD_WORKERS_CONCURRENCY"
    assert settings.origins["workers.max_count"] == "flag"
    assert load(None, {}, tmp_path).origins["workers.max_count"] == "freehold.toml:3"


def test_a_key_of_another_section_is_not_taken_for_the_origin(tmp_path: Path) -> None:
    (tmp_path / "freehold.toml").write_text(
        '[tenants.acme]\nmax_count = 4\n[queues."*"]\nmax = 3\n[workers]\nmax_count = 9\n'
    )
    origins = load(None, {}, tmp_path).origins
    found = [origins[name] for name in ("tenants.acme", "queues.*", "workers.max_count")]
    assert found == ["freehold.toml:1", "freehold.toml:3", "freehold.toml:6"]


def test_a_flag_of_an_unknown_setting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"did you mean workers\.max_count\?"):
        load({"workers.max_counts": 3}, {}, tmp_path)


def test_the_shipped_file_has_every_setting_and_no_other(tmp_path: Path) -> None:
    assert list(load(None, {}, tmp_path).origins) == list(SETTING_TYPES)


def test_pyproject_is_read_if_there_is_no_freehold_toml(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.freehold.workers]\nconcurrency = 5\n")
    assert load(None, {}, tmp_path).workers.concurrency == 5


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, "freehold.db"),
        ({"DATABASE_URL": "postgresql://a/b"}, "postgresql://a/b"),
        ({"DATABASE_URL": "postgresql://a/b", "FREEHOLD_URL": "x.db"}, "x.db"),
    ],
)
def test_the_url_is_taken_from_the_environment(
    environment: dict[str, str], url: str, tmp_path: Path
) -> None:
    assert load(None, environment, tmp_path).store.url == url


def test_freehold_toml_wins_over_database_url(tmp_path: Path) -> None:
    """DATABASE_URL usually belongs to the web application: jobs must not go there by accident."""
    (tmp_path / "freehold.toml").write_text("[store]\nurl = 'jobs.db'\n")
    environment = {"DATABASE_URL": "postgresql://a/site"}
    assert load(None, environment, tmp_path).store.url == "jobs.db"
    environment["FREEHOLD_URL"] = "other.db"
    assert load(None, environment, tmp_path).store.url == "other.db"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[workers]\nconcurency = 3\n", "freehold.toml:2.*did you mean workers.concurrency?"),
        ("[workers]\nconcurrency = 'x'\n", "freehold.toml:2: workers.concurrency = 'x'"),
        ("[workers]\nconcurrency = 0\n", "at least 1"),
        ("[workers]\ndefault_count = 9\n", "9 .freehold.toml:2. is more than"),
        ("[workers]\nqueues = []\n", "give a list of names"),
        ("[workers\n", "freehold.toml is not TOML.*line 1"),
        ("[http]\nport = 70000\n", "http.port = 70000: give a whole number"),
        ("[http]\ntokens = 'hunter2'\n", "http.tokens: give a list"),
        ("[workers]\nconcurrency = '3'\n", "concurrency = '3': give a whole number"),
        ("[workers]\nmisfit_seconds = nan\n", "misfit_seconds = nan: give a number of 0 or more"),
        ("[store]\nsession = 'fast'\n", 'freehold.toml:2.*give "pipelined" or "plain"'),
        ("workers = 5\n", "freehold.toml:1: workers: give a table, which begins with .workers."),
        ("[worker]\nconcurrency = 3\n", "freehold.toml:2: .*did you mean workers.concurrency?"),
        ("\nqueues = 5\n", "freehold.toml:2: queues: give a table, which begins with .queues."),
        ("shards = ['east']\n", "freehold.toml:1: shards: give a table"),
        ("[kinds]\na = 3\n", "freehold.toml:2: kind a: give a table with duration_ms"),
        ("[kinds.a]\nduration = 3\n", "did you mean duration_ms?"),
        ("[kinds.a]\noutcome = 'explode'\n", "choose succeed, fail, cancel"),
        ("[kinds.a]\nduration_ms = [9, 1]\n", "give milliseconds"),
        ("[kinds.a]\nfail_attempts = -1\n", "0 or more"),
    ],
)
def test_an_invalid_setting_is_refused_with_its_position(
    text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "freehold.toml").write_text(text)
    with pytest.raises(BadSettings, match=message):
        load(None, {}, tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("freehold.toml", b"app = '\xff'", "freehold.toml is not TOML"),
        ("pyproject.toml", b"tool = 5", "pyproject.toml: tool: give a table"),
        ("pyproject.toml", b"[tool]\nfreehold = 5", "pyproject.toml: freehold: give a table"),
    ],
)
def test_a_file_of_another_form_is_refused(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadSettings, match=message):
        load(None, {}, tmp_path)


@pytest.mark.parametrize(
    "environment",
    [{"FREEHOLD_WORKERS_CONCURRENCY": "many"}, {"FREEHOLD_WORKERS_MAX_COUNT": "2.5"}],
)
def test_the_environment_is_checked_too(environment: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="FREEHOLD_WORKERS_"):
        load(None, environment, tmp_path)


def test_a_schema_outside_the_whitelist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadName, match="schema"):
        load(None, {"FREEHOLD_SCHEMA": 'x"; drop'}, tmp_path)


def test_shards_are_named_in_the_file_or_the_environment(tmp_path: Path) -> None:
    (tmp_path / "freehold.toml").write_text('[shards]\neast = "a.db"\nwest = "b.db"\n')
    settings = load(None, {"FREEHOLD_SHARD_WEST": "c.db"}, tmp_path)
    assert {
        name: (url, settings.origins[f"shards.{name}"]) for name, url in settings.shards.items()
    } == {
        "east": ("a.db", "freehold.toml:2"),
        "west": ("c.db", "FREEHOLD_SHARD_WEST"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[shards]\nhome = 'a.db'\n", "store.url"),
        ("[shards]\neast = 3\n", "freehold.toml:2: shards.east: give the URL"),
        ("[shards]\nEast = 'postgresql://a:hunter2@b/c'\n", "shard 'East' is not a usable name"),
    ],
)
def test_invalid_shards_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "freehold.toml").write_text(text)
    with pytest.raises((BadName, BadSettings), match=message) as refused:
        load(None, {}, tmp_path)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("FREEHOLD_WORKER_CONCURRENCY", "FREEHOLD_WORKERS_CONCURRENCY"),
        ("FREEHOLD_CONCURRENCY", "FREEHOLD_WORKERS_CONCURRENCY"),
        ("FREEHOLD_HTTP_TOKEN", "FREEHOLD_HTTP_TOKENS"),
        ("FREEHOLD_URI", "FREEHOLD_URL"),
        ("FREEHOLD_TENANTS", "FREEHOLD_TENANT"),
    ],
)
def test_a_mistyped_variable_is_found(variable: str, meant: str) -> None:
    assert unknown_variables({variable: "1", "FREEHOLD_URL": "a.db"}) == {variable: meant}


def test_settings_and_variables_of_other_programs_are_not_reported() -> None:
    """Among them those that Kubernetes sets for a service `freehold`."""
    ours = {f"FREEHOLD_{name.replace('.', '_').upper()}" for name in SETTING_TYPES}
    others = {
        f"FREEHOLD_{name}"
        for name in (
            "SERVICE_HOST",
            "SERVICE_PORT",
            "SERVICE_PORT_HTTP",
            "PORT",
            "PORT_8787_TCP",
            "PORT_8787_TCP_ADDR",
            "PORT_8787_TCP_PORT",
            "PORT_8787_TCP_PROTO",
            "ADMIN_TOKEN",
            "VIEWER_TOKEN",
        )
    }
    more = {"FREEHOLD_URL", "FREEHOLD_SHARD_EAST", "FREEHOLD_DEBUG", "DATABASE_URI"}
    assert unknown_variables(dict.fromkeys(ours | others | more, "1")) == {}
