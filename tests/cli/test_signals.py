"""`freehold signals` and `freehold signal send`."""

from __future__ import annotations

import pytest

from freehold.model import suspension
from freehold.model.outcome import OutcomeKind
from tests.cli.shell import Shell
from tests.stores import key_of


def test_a_signal_is_sent_once_and_listed_without_its_value(shell: Shell) -> None:
    assert shell("signals").out == "no signals\n"
    sent = shell("signal", "send", "shipped:7", '{"code": "swordfish"}', "--by", "ann")
    assert sent.out == "signal shipped:7 is sent\n"
    assert shell("signal", "send", "shipped:7", "--json").json["sent"] is False
    again = shell("signal", "send", "shipped:7", "8").out
    assert again == "signal shipped:7 was sent before, and keeps its first value\n"
    listed = shell("signals").out
    for text in ("shipped:7", "ann", "not woken yet"):
        assert text in listed
    assert "swordfish" not in listed
    shell("signal", "send", "paid")
    first = shell("signals", "--limit", "1")
    assert "more: --after 'paid'" in first.out
    names = shell("signals", "--after", "paid", "--json").json["signals"]
    assert [each["name"] for each in names] == ["shipped:7"]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("paid", "much"), "VALUE is not JSON"),
        (("",), "the name of a signal"),
        (("paid", "1", "--keep-days", "0"), "--keep-days"),
        (("paid", "1", "--keep-days", "4000"), "at most ten years"),
        (("paid", "1", "--by", ""), "by ''"),
    ],
)
def test_a_wrong_signal_is_refused(shell: Shell, args: tuple[str, ...], expected: str) -> None:
    assert expected in shell.refused("signal", "send", *args, code=2)


def test_a_job_that_waits_names_its_signal(shell: Shell) -> None:
    store = shell.store
    job_id = store.add()
    attempt = store.claim_one()
    store.store.await_signal(attempt.owner, key_of(attempt), "paid", 1, 60.0)
    waits_for = suspension.signal("paid")
    suspended = {"waits_for": waits_for, "reason": suspension.sentence(waits_for)}
    store.end(attempt, OutcomeKind.SUSPEND, delay_seconds=60.0, **suspended)
    for command in ("show", "explain"):
        assert "waits for the signal: paid" in shell("job", command, str(job_id)).out
