"""`freehold queues`."""

from __future__ import annotations

import pytest

from freehold.model.limit import Limit
from tests.cli.shell import Shell


@pytest.mark.requirement("P12")
def test_queues_show_what_is_ready_and_leased(shell: Shell) -> None:
    for _ in range(3):
        shell.store.add(queue="mail")
    shell.store.add(queue="mail", delay_seconds=60.0)
    shell.store.claim_one(queue="mail")
    document = shell("queues", "--json").json
    assert [(q["name"], q["ready"], q["leased"]) for q in document["queues"]] == [("mail", 2, 1)]
    assert (document["counts"]["ready"], document["counts"]["waiting"]) == (2, 1)
    out = shell("queues").out
    assert "mail" in out
    assert "in all: 2 ready, 1 waiting, 1 leased" in out


def test_jobs_held_back_by_a_limit_key_or_a_paused_lane_are_shown(shell: Shell) -> None:
    shell.store.store.set_key_limit("vendor", Limit(0))
    shell.store.store.pause_lane("lane", "ann", "audit", None)
    shell.store.add(limit_key="vendor")
    shell.store.add(target="lane")
    assert shell.store.claim() == []
    assert "in all: 1 limited, 1 lane paused\n" in shell("queues").out


def test_a_queue_of_jobs_that_are_not_ready_is_shown(shell: Shell) -> None:
    shell.store.add(queue="later", delay_seconds=60.0)
    (queue,) = shell("queues", "--json").json["queues"]
    assert (queue["name"], queue["ready"], queue["not_ready"]) == ("later", 0, 1)
    for command in (("queues",), ("top", "--once")):
        rows = [line.split() for line in shell(*command).out.splitlines()]
        assert ["later", "0", "0", "1"] in rows


def test_a_pause_of_all_queues_is_shown(shell: Shell) -> None:
    result = shell("queues", "pause", "*", "--reason", "night", "--by", "ann")
    assert result.out == "all queues are paused\n"
    assert "all queues are paused by ann now: night\n" in shell("queues").out
    assert "ALL paused by ann" in shell("top", "--once").out
    pause = shell("queues", "--json").json["pause"]
    assert (pause["by"], pause["reason"]) == ("ann", "night")
    assert shell("queues", "resume", "*").out == "all queues resumed\n"
    assert shell("queues", "resume", "*").out == "all queues were not paused\n"
    assert shell("queues", "--json").json["pause"] is None
    assert "paused" not in shell("queues").out + shell("top", "--once").out


def test_a_paused_tenant_is_shown(shell: Shell) -> None:
    shell("tenants", "create", "acme")
    shell("tenants", "pause", "acme", "--reason", "unpaid", "--by", "ann")
    assert "all queues are paused by ann" in shell("queues", "--tenant", "acme").out
    assert "ALL paused by ann" in shell("top", "--once", "--tenant", "acme").out
    shell("tenants", "drop", "acme", "--yes")


def test_no_queues(shell: Shell) -> None:
    assert shell("queues").out == "in all: no live jobs\n"


def test_jobs_of_a_paused_queue_are_not_claimed_until_it_is_resumed(shell: Shell) -> None:
    job = shell.store.add(queue="mail")
    result = shell("queues", "pause", "mail", "--reason", "smtp down", "--by", "ann")
    assert result.out == "queue mail is paused\n"
    assert shell.store.claim(queue="mail") == []
    out = shell("queues").out
    assert "by ann" in out
    assert "smtp down" in out
    assert shell("queues", "resume", "mail").out == "queue mail resumed\n"
    assert shell("queues", "resume", "mail").out == "queue mail was not paused\n"
    assert [attempt.job_id for attempt in shell.store.claim(queue="mail")] == [job]


def test_a_pause_of_an_unknown_queue_says_so(shell: Shell) -> None:
    shell.store.add(queue="mail")
    result = shell("queues", "pause", "mial")
    assert (result.code, result.out) == (0, "queue mial is paused\n")
    assert result.err.startswith("freehold: there is no queue mial yet")
    assert "did you mean mail?" in result.err
    shell("queues", "resume", "mial")
    assert [queue["name"] for queue in shell("queues", "--json").json["queues"]] == ["mail"]
    assert shell("queues", "pause", "mail").err == ""
    assert shell("queues", "pause", "*").err == ""


def test_a_pause_can_have_an_end(shell: Shell) -> None:
    until = "2090-01-01T00:00:00Z"
    shell.store.add(queue="mail")
    result = shell("queues", "pause", "mail", "--until", until, "--json").json
    assert result == {"name": "mail", "paused": True, "until": until}
    assert shell("queues", "--json").json["queues"][0]["paused_until"] == until
    assert "until 2090-01-01 00:00:00 UTC" in shell("queues").out
    result = shell("queues", "resume", "mail", "--json").json
    assert result == {"name": "mail", "paused": False, "was_paused": True}


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("pause", "a b"), "queue 'a b' is not a usable name"),
        (("resume", "a b"), "queue 'a b' is not a usable name"),
        (("pause", "q", "--until", "2090-01-01"), "has no time zone"),
        (("pause", "q", "--until", "soon"), "'soon' is not a time"),
        (("pause", "q", "--until", "2020-01-01T00:00:00Z"), "give a time after 20"),
        (("pause", "q", "--by", ""), "by ''"),
        (("pause", "q", "--reason", "x" * 501), "at most 500 characters"),
        (("pause",), "Missing argument 'NAME'"),
        (("destroy",), "No such command 'destroy'"),
    ],
)
def test_bad_input_changes_nothing(shell: Shell, args: tuple[str, ...], expected: str) -> None:
    assert expected in shell.refused("queues", *args, code=2)


def test_all_queues_of_a_tenant_are_paused_and_resumed_as_a_tenant(shell: Shell) -> None:
    """The states of its queues and of the directory must not differ."""
    shell("tenants", "create", "acme")
    shell("tenants", "pause", "acme", "--reason", "unpaid")
    for verb in ("resume", "pause"):
        line = shell.refused("queues", verb, "*", "--tenant", "acme", code=2)
        assert f"freehold tenants {verb} acme" in line
    assert shell("tenants", "--json").json["tenants"][0]["state"] == "paused"
    shell("tenants", "resume", "acme")
    shell("tenants", "drop", "acme", "--yes")
