"""`freehold lanes`, `limits`, `queues set-weight`: listed, set, removed; bad input is refused."""

from __future__ import annotations

import pytest

from freehold.model.outcome import OutcomeKind
from tests.cli.shell import Shell


def test_lanes_show_what_blocks_them(shell: Shell) -> None:
    first = shell.store.add(target="account-1")
    shell.store.add(target="account-1")
    shell.store.end(shell.store.claim_one(), OutcomeKind.PAUSE, reason="no tokens left")
    out = shell("lanes").out
    assert "account-1" in out
    assert "blocked: no tokens left" in out
    (lane,) = shell("lanes", "--json").json["lanes"]
    assert (lane["target"], lane["depth"], lane["head"], lane["blocked"]) == (
        "account-1",
        2,
        first,
        True,
    )


@pytest.mark.requirement("S4.3")
def test_a_lane_is_paused_and_resumed(shell: Shell) -> None:
    job = shell.store.add(target="account-1")
    result = shell("lanes", "pause", "account-1", "--reason", "audit", "--by", "ann")
    assert result.out == "lane account-1 is paused\n"
    assert shell.store.claim() == []
    assert "paused by ann" in shell("lanes").out
    assert "is paused by ann: audit" in shell("job", "explain", str(job)).out
    assert shell("lanes", "resume", "account-1").out == "lane account-1 resumed\n"
    assert shell("lanes", "resume", "account-1").out == "lane account-1 was not paused\n"
    assert [attempt.job_id for attempt in shell.store.claim()] == [job]


@pytest.mark.requirement("S0.10")
def test_limits_are_set_listed_and_removed(shell: Shell) -> None:
    assert shell("limits").out == "no limits\n"
    assert shell("limits", "queue", "mail", "--max", "7").out == "queue mail: 7 at a time\n"
    assert shell("limits", "all", "--max", "100").out == "all queues together: 100 at a time\n"
    result = shell("limits", "key", "github:*", "--max", "2", "--rate", "100/min").out
    assert result == "key github:*: 2 at a time, 100/60s starts\n"
    out = shell("limits").out
    assert "all queues" in out
    assert "github:*" in out
    document = shell("limits", "--json").json
    assert [each["name"] for each in document["queues"]] == ["*", "mail"]
    assert shell("limits", "queue", "mail").out == "queue mail: no limit\n"
    assert [each["name"] for each in shell("limits", "--json").json["queues"]] == ["*"]


def test_limits_show_their_use(shell: Shell) -> None:
    shell("limits", "queue", "default", "--max", "7")
    shell("limits", "key", "smtp", "--max", "5", "--rate", "2/min")
    shell("limits", "key", "github:*", "--max", "2")
    for _ in range(3):
        shell.store.add(limit_key="smtp")
    assert len(shell.store.claim()) == 2
    rows = {"".join(line.split()[:2]): line for line in shell("limits").out.splitlines()[2:]}
    assert "2 running" in rows["queuedefault"]
    assert "2 running, 2 starts in the last 60 s, next in" in rows["keysmtp"]
    assert "by each key" in rows["keygithub:*"]
    document = shell("limits", "--json").json
    assert document["queues"][0]["use"] == {"leased": 2, "started": 0}
    uses = {each["name"]: each["use"] for each in document["keys"]}
    assert uses == {"github:*": None, "smtp": {"leased": 2, "started": 2}}


def test_a_queue_is_weighed(shell: Shell) -> None:
    assert shell("queues", "set-weight", "mail", "2.5").out == "queue mail has weight 2.5\n"
    (queue,) = shell("queues", "--json").json["queues"]
    assert (queue["name"], queue["weight"]) == ("mail", 2.5)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("limits", "queue", "mail", "--rate", "lots"), "100/min"),
        (("limits", "queue", "mail", "--rate", "0/min"), "1 to 1,000,000 starts"),
        (("limits", "queue", "no such name!", "--max", "1"), "not a usable name"),
        (("limits", "queue", "mail", "--max", "-1"), "--max"),
        (("queues", "set-weight", "mail", "0"), "0.001 to 1000000"),
        (("lanes", "--limit", "0"), "1 to 1000 lanes"),
        (("lanes", "pause", ""), "1 to 200 printable"),
        (("lanes", "pause", "a", "--until", "2020-01-01T00:00:00Z"), "give a time after 20"),
    ],
)
def test_bad_input_is_explained_and_changes_nothing(
    shell: Shell, args: tuple[str, ...], expected: str
) -> None:
    before = shell.store.everything()
    result = shell(*args)
    assert result.code == 2
    assert expected in result.err
    assert shell.store.everything() == before
