"""`freehold audit`: what operators changed, whichever command they used."""

from __future__ import annotations

import pytest

from tests.cli.shell import Shell

pytestmark = pytest.mark.requirement("N16")


def test_every_command_that_changes_something_is_recorded(shell: Shell) -> None:
    job_id = str(shell.store.add())
    for command in (
        ("job", "pause", job_id, "--by", "ann", "--reason", "look"),
        ("queues", "pause", "mail", "--by", "ann"),
        ("queues", "resume", "mail", "--by", "ann"),
        ("queues", "set-weight", "mail", "2", "--by", "ann", "--reason", "campaign"),
        ("lanes", "pause", "lane", "--by", "ann"),
        ("lanes", "resume", "lane", "--by", "ann"),
        ("limits", "queue", "mail", "--max", "3", "--by", "ann"),
        ("limits", "all", "--rate", "5/s", "--by", "ann"),
        ("limits", "key", "github", "--max", "1", "--by", "ann"),
    ):
        assert shell(*command).code == 0, command
    entries = shell("audit", "--json").json["entries"][::-1]
    assert [(e["verb"], e["kind"], e["subject"]) for e in entries] == [
        ("pause", "job", job_id),
        *(("pause", "queue", "mail"), ("resume", "queue", "mail")),
        *(("set_weight", "queue", "mail"), ("pause", "lane", "lane"), ("resume", "lane", "lane")),
        *(("set_limit", "queue", "mail"), ("set_limit", "queue", "*")),
        ("set_limit", "limit", "github"),
    ]
    assert {(e["by"], e["via"]) for e in entries} == {("ann", "cli")}
    assert entries[3]["reason"] == "campaign"


def test_the_table_has_author_change_both_values_and_reason(shell: Shell) -> None:
    job_id = shell.store.add()
    assert shell("audit").out == "no changes\n"
    shell("job", "pause", str(job_id), "--by", "ann", "--reason", "a\nb")
    text = " ".join(shell("audit").out.split())
    for part in ("ann", "cli", "pause", f"job {job_id}", "state=queued", "state=paused", "a b"):
        assert part in text
    shell("job", "resume", str(job_id))
    assert "more: --before 2" in shell("audit", "--limit", "1").out
    assert len(shell("audit", "--by", "ann", "--json").json["entries"]) == 1


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--subject", "7"), "kind"),
        (("--kind", "thing"), "'thing' is not one of"),
        (("--limit", "0"), "--limit"),
        (("--before", "0"), "`next`"),
    ],
)
def test_an_invalid_filter_is_refused(shell: Shell, args: tuple[str, ...], expected: str) -> None:
    assert expected in shell.refused("audit", *args, code=2)
