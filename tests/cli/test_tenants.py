"""`freehold tenants`, and --tenant on every other command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Said, refusal, run


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "postgres":
        yield request.getfixturevalue("postgres_url")
    else:
        yield str(tmp_path / "jobs.db")


@pytest.mark.requirement("S4.2")
def test_the_life_of_a_tenant(url: str) -> None:
    def freehold(*words: str, code: int = 0) -> str:
        said = run(*words, "--url", url)
        assert said.code == code, said
        return said.out

    assert freehold("migrate")
    assert freehold("tenants") == "no tenants\n"
    assert freehold("tenants", "create", "acme") == "tenant acme lives in home\n"
    freehold("tenants", "create", "beta", "--weight", "3", "--max-slots", "5")
    freehold("enqueue", "sim.quick", "input=1", "--tenant", "acme")
    assert "sim.quick" in freehold("jobs", "--tenant", "acme")
    assert freehold("jobs") == freehold("jobs", "--tenant", "beta") == "no jobs\n"
    assert freehold("tenants", "pause", "acme", "--reason", "unpaid", "--by", "ann")
    assert "ann: unpaid" in freehold("tenants")
    told = freehold("job", "explain", "1", "--tenant", "acme")
    assert "paused by ann" in told
    assert freehold("tenants", "resume", "acme") == "tenant acme goes on\n"
    assert freehold("tenants", "weigh", "acme", "2.5") == "tenant acme weighs 2.5\n"
    lines = json.loads(freehold("tenants", "--json"))["tenants"]
    assert [(line["name"], line["weight"], line["max_slots"]) for line in lines] == [
        ("acme", 2.5, None),
        ("beta", 3.0, 5),
    ]
    assert freehold("tenants", "migrate").splitlines() == [
        "acme: 0 migrations applied",
        "beta: 0 migrations applied",
    ]
    freehold("tenants", "drop", "acme", code=1)
    assert freehold("tenants", "drop", "acme", "--force") == "tenant acme is gone\n"


def test_a_tenant_is_moved_by_hand(tmp_path: Path) -> None:
    (tmp_path / "east").mkdir()
    place = {"FREEHOLD_PLACE_EAST": str(tmp_path / "east" / "jobs.db")}
    url = str(tmp_path / "jobs.db")

    def freehold(*words: str) -> Said:
        return run(*words, "--url", url, env=place)

    freehold("tenants", "create", "acme")
    freehold("enqueue", "t", "--tenant", "acme")
    assert freehold("tenants", "move", "acme", "east").out == "tenant acme lives in east\n"
    assert freehold("jobs", "--tenant", "acme", "--json").json["jobs"][0]["task"] == "t"
    shown = f"east: sqlite:///{place['FREEHOLD_PLACE_EAST']}\nhome: sqlite:///{url}\n"
    assert freehold("tenants", "places").out == shown


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("tenants", "create", "Acme"), 2, "not a usable name"),
        (("tenants", "create", "beta", "--place", "west"), 2, "known are home"),
        (("tenants", "create", "beta", "--weight", "0"), 2, "0.001"),
        (("tenants", "create", "acme"), 1, "acme already"),
        (("tenants", "drop", "acmee"), 1, "did you mean acme"),
        (("tenants", "move", "acme", "west"), 2, "there is no place 'west'"),
        (("jobs", "--tenant", "acmee"), 1, "did you mean acme"),
        (("jobs", "--tenant", "a;b"), 2, "not a usable name"),
    ],
)
def test_refusals_are_one_line(
    tmp_path: Path, words: tuple[str, ...], code: int, told: str
) -> None:
    url = str(tmp_path / "jobs.db")
    run("tenants", "create", "acme", "--url", url)
    assert told in refusal(run(*words, "--url", url), code)
    assert [line["name"] for line in run("tenants", "--json", "--url", url).json["tenants"]] == [
        "acme"
    ]


def test_passwords_of_places_are_never_shown(tmp_path: Path) -> None:
    secret = {"FREEHOLD_PLACE_EAST": "postgresql://ann:hunter2@127.0.0.1:1/db"}
    url = str(tmp_path / "jobs.db")
    run("tenants", "create", "acme", "--url", url)
    for words in (("tenants", "places"), ("tenants", "move", "acme", "east")):
        said = run(*words, "--url", url, env=secret)
        assert "hunter2" not in said.out + said.err
        assert "ann@127.0.0.1" in said.out + said.err
    said = run("config", env=secret)
    assert "postgresql://ann@127.0.0.1:1/db" in said.out
    assert "hunter2" not in said.out + run("config", "--json", env=secret).out


@pytest.mark.requirement("S0.10", "P8")
def test_the_limit_that_tenants_share_is_told_with_who_uses_it(postgres_url: str) -> None:
    def freehold(*words: str) -> str:
        said = run(*words, "--url", postgres_url)
        assert said.code == 0, said
        return said.out

    freehold("migrate")
    freehold("tenants", "create", "acme")
    freehold("enqueue", "sim.quick", "input=1", "--tenant", "acme")
    freehold("limits", "all", "--max", "0")
    told = " ".join(freehold("limits", "--tenant", "acme").split())
    assert "all tenants used by nobody 0 at a time" in told
    told = freehold("job", "explain", "1", "--tenant", "acme")
    assert "all tenants together: 0 of at most 0 run" in told
    shared = json.loads(freehold("limits", "--tenant", "acme", "--json"))["shared"]
    assert (shared["limit"]["max_leases"], shared["tenants"]) == (0, [])
