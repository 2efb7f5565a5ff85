"""`freehold tenants`, and --tenant on every other command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import CommandResult, refusal, run


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "postgres":
        yield request.getfixturevalue("postgres_url")
    else:
        yield str(tmp_path / "jobs.db")


@pytest.mark.requirement("S4.2")
def test_the_life_of_a_tenant(url: str) -> None:
    def freehold(*args: str, code: int = 0) -> str:
        result = run(*args, "--url", url)
        assert result.code == code, result
        return result.out

    assert freehold("migrate")
    assert freehold("tenants") == "no tenants\n"
    assert freehold("tenants", "create", "acme") == "tenant acme created in shard home\n"
    freehold("tenants", "create", "beta", "--weight", "3", "--max-slots", "5")
    freehold("enqueue", "send", "to=ann", "--tenant", "acme")
    assert "send" in freehold("jobs", "--tenant", "acme")
    assert freehold("jobs") == freehold("jobs", "--tenant", "beta") == "no jobs\n"
    assert freehold("tenants", "pause", "acme", "--reason", "unpaid", "--by", "ann")
    assert "ann: unpaid" in freehold("tenants")
    assert "paused by ann" in freehold("job", "explain", "1", "--tenant", "acme")
    assert freehold("tenants", "resume", "acme") == "tenant acme resumed\n"
    assert freehold("tenants", "set-weight", "acme", "2.5") == "tenant acme has weight 2.5\n"
    tenants = json.loads(freehold("tenants", "--json"))["tenants"]
    assert [(each["name"], each["weight"], each["max_slots"]) for each in tenants] == [
        ("acme", 2.5, None),
        ("beta", 3.0, 5),
    ]
    assert freehold("tenants", "migrate").splitlines() == [
        "acme: 0 migrations applied",
        "beta: 0 migrations applied",
    ]
    freehold("tenants", "drop", "acme", code=1)
    assert freehold("tenants", "drop", "acme", "--force") == "tenant acme dropped\n"


def test_a_tenant_is_moved_to_another_shard(tmp_path: Path) -> None:
    (tmp_path / "east").mkdir()
    shard = {"FREEHOLD_SHARD_EAST": str(tmp_path / "east" / "jobs.db")}
    url = str(tmp_path / "jobs.db")

    def freehold(*args: str) -> CommandResult:
        return run(*args, "--url", url, env=shard)

    freehold("tenants", "create", "acme")
    freehold("enqueue", "t", "--tenant", "acme")
    assert freehold("tenants", "move", "acme", "east").out == "tenant acme is in shard east\n"
    assert freehold("jobs", "--tenant", "acme", "--json").json["jobs"][0]["task"] == "t"
    shown = f"east: sqlite:///{shard['FREEHOLD_SHARD_EAST']}\nhome: sqlite:///{url}\n"
    assert freehold("tenants", "shards").out == shown


@pytest.mark.parametrize(
    ("args", "code", "expected"),
    [
        (("tenants", "create", "Acme"), 2, "not a usable name"),
        (("tenants", "create", "beta", "--shard", "west"), 2, "known are home"),
        (("tenants", "create", "beta", "--weight", "0"), 2, "0.001"),
        (("tenants", "create", "acme"), 1, "tenant acme exists already"),
        (("tenants", "drop", "acmee"), 1, "did you mean acme"),
        (("tenants", "move", "acme", "west"), 2, "there is no shard 'west'"),
        (("jobs", "--tenant", "acmee"), 1, "did you mean acme"),
        (("jobs", "--tenant", "a;b"), 2, "not a usable name"),
    ],
)
def test_refusals_are_one_line(
    tmp_path: Path, args: tuple[str, ...], code: int, expected: str
) -> None:
    url = str(tmp_path / "jobs.db")
    run("tenants", "create", "acme", "--url", url)
    assert expected in refusal(run(*args, "--url", url), code)
    assert [line["name"] for line in run("tenants", "--json", "--url", url).json["tenants"]] == [
        "acme"
    ]


def test_passwords_of_shards_are_never_shown(tmp_path: Path) -> None:
    secret = {"FREEHOLD_SHARD_EAST": "postgresql://ann:hunter2@127.0.0.1:1/db"}
    url = str(tmp_path / "jobs.db")
    run("tenants", "create", "acme", "--url", url)
    for args in (("tenants", "shards"), ("tenants", "move", "acme", "east")):
        result = run(*args, "--url", url, env=secret)
        assert "hunter2" not in result.out + result.err
        assert "ann@127.0.0.1" in result.out + result.err
    result = run("config", env=secret)
    assert "postgresql://ann@127.0.0.1:1/db" in result.out
    assert "hunter2" not in result.out + run("config", "--json", env=secret).out


@pytest.mark.requirement("S0.10", "P8")
def test_the_limit_that_tenants_share_is_listed_with_its_use(postgres_url: str) -> None:
    def freehold(*args: str) -> str:
        result = run(*args, "--url", postgres_url)
        assert result.code == 0, result
        return result.out

    freehold("migrate")
    freehold("tenants", "create", "acme")
    freehold("enqueue", "send", "to=ann", "--tenant", "acme")
    freehold("limits", "all", "--max", "0")
    listed = " ".join(freehold("limits", "--tenant", "acme").split())
    assert "all tenants 0 at a time nothing" in listed
    explained = freehold("job", "explain", "1", "--tenant", "acme")
    assert "the limit of all tenants is 0: nothing may run" in explained
    shared = json.loads(freehold("limits", "--tenant", "acme", "--json"))["shared"]
    assert (shared["limit"]["max_leases"], shared["tenants"]) == (0, [])
