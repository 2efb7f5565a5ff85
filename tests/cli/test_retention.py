"""`freehold retention`: rules by queue and task."""

from __future__ import annotations

import pytest

from tests.cli.shell import Shell

pytestmark = pytest.mark.requirement("N16")


def test_rules_are_set_listed_and_removed(shell: Shell) -> None:
    assert "no queue and no task" in shell("retention").out
    assert "after 7 days" in shell("retention", "queue", "mail", "7", "--reason", "privacy").out
    shell("retention", "task", "shop.ping", "0.5")
    assert shell("retention").out == "queue mail: 7 days\ntask shop.ping: 0.5 days\n"
    rules = shell("retention", "--json").json["rules"]
    assert [(rule["kind"], rule["days"]) for rule in rules] == [("queue", 7.0), ("task", 0.5)]
    assert "no retention of its own" in shell("retention", "queue", "mail").out
    assert shell("retention").out == "task shop.ping: 0.5 days\n"
    entries = shell("audit", "--kind", "retention", "--json").json["entries"]
    assert [entry["subject"] for entry in entries] == ["queue mail", "task shop.ping", "queue mail"]


@pytest.mark.parametrize("args", [("queue", "a b", "1"), ("task", "t", "-1"), ("queue", "q", "x")])
def test_an_invalid_rule_is_refused(shell: Shell, args: tuple[str, ...]) -> None:
    shell.refused("retention", *args, code=2)
