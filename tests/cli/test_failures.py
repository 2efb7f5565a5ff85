"""`freehold failures`, and previews of verbs on chosen jobs."""

from __future__ import annotations

from freehold.model.job import ErrorInfo
from freehold.model.outcome import OutcomeKind
from tests.cli.shell import Shell


def test_failures_are_listed_in_groups(shell: Shell) -> None:
    assert shell("failures").out == "no failures of the newest 0 unsuccessful jobs\n"
    for number in (17, 18):
        shell.store.add(task="mail.send", max_attempts=1)
        error = ErrorInfo("builtins.ValueError", f"no account {number}")
        shell.store.end(shell.store.claim_one(), OutcomeKind.ERROR, error=error)
    text = shell("failures").out
    assert "no account …" in text
    assert "of the newest 2 unsuccessful jobs" in text
    (group,) = shell("failures", "--json").json["groups"]
    assert (group["count"], group["task"]) == (2, "mail.send")


def test_a_dry_run_changes_nothing(shell: Shell) -> None:
    job_id = shell.store.add()
    out = shell("job", "cancel", str(job_id), "999", "--dry-run").out
    assert "cancel of 2 jobs:" in out
    assert "1  queued to be changed" in out
    assert "1  refused: there is no such job" in out
    assert "delete of 1 job:" in shell("job", "delete", str(job_id), "--dry-run").out
    assert shell.store.state(job_id) == "queued"
