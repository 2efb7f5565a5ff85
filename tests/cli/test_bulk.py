"""`freehold jobs ... VERB` and `freehold bulk`: previewed, asked, carried out."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from freehold.cli import main
from freehold.model import bulk as rules
from freehold.model.outcome import OutcomeKind
from tests.cli.shell import Shell

pytestmark = pytest.mark.requirement("N16")


def fail(shell: Shell, count: int) -> list[int]:
    ids = [shell.store.add() for _ in range(count)]
    for attempt in shell.store.claim():
        shell.store.end(attempt, OutcomeKind.FAIL)
    return ids


def states(shell: Shell, ids: list[int]) -> list[str]:
    return [shell.store.state(job_id) for job_id in ids]


def test_a_few_jobs_are_changed_at_once(shell: Shell) -> None:
    ids, other = fail(shell, 3), shell.store.add()
    result = shell("jobs", "--state", "failed", "retry", "--yes", "--by", "ann", "--reason", "up")
    assert result.code == 0
    assert "retry of 3 jobs, done" in result.out
    assert states(shell, [*ids, other]) == ["queued"] * 4
    assert "by ann (cli): up" in result.out


def test_the_preview_is_shown_and_nothing_is_done_without_a_yes(shell: Shell) -> None:
    ids = fail(shell, 2)
    arguments = ["jobs", "--state", "failed", "retry", "--url", shell.url]
    denied = CliRunner().invoke(main, arguments, input="n\n")
    assert denied.exit_code == 0
    assert "retry of 2 jobs:" in denied.output
    assert "2  failed to be changed" in denied.output
    assert states(shell, ids) == ["failed", "failed"]
    accepted = CliRunner().invoke(main, arguments, input="y\n")
    assert accepted.exit_code == 0
    assert states(shell, ids) == ["queued", "queued"]


def test_a_dry_run_counts_by_cause(shell: Shell) -> None:
    fail(shell, 2)
    shell.store.add()
    document = shell("jobs", "--queue", "default", "pause", "--dry-run", "--json").json
    assert (document["jobs"], document["done"]) == (3, {"queued": 1})
    assert list(document["refused"].values()) == [2]
    assert shell("bulk", "--json").json == {"operations": []}


def test_many_jobs_become_an_operation_that_can_be_stopped(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freehold.operations.bulk.AT_ONCE", 2)
    ids = fail(shell, 3)
    started = shell("jobs", "--state", "failed", "retry", "--yes", "--json").json
    assert (started["state"], started["left"]) == ("running", 3)
    assert states(shell, ids) == ["failed"] * 3
    number = str(started["id"])
    assert "3 jobs are left" in shell("bulk", "stop", number, "--reason", "wait").out
    assert shell("bulk", "stop", number).code == 0
    assert shell("bulk", "show", number, "--json").json["state"] == "stopped"
    assert "stopped" in shell("bulk").out
    assert "is running" in shell("bulk", "resume", number).out
    while shell.store.store.carry_out_bulk_step():
        pass
    assert states(shell, ids) == ["queued"] * 3
    assert "bulk operation" in shell.refused("bulk", "stop", number, code=1)
    assert rules.AT_ONCE == 100


def test_waiting_jobs_are_amended_and_deleted(shell: Shell) -> None:
    job_id = shell.store.add()
    done = shell("jobs", "--queue", "default", "amend", "--priority", "5", "--to-queue", "slow")
    assert (done.code, shell.store.job(job_id).queue) == (130, "default")  # no answer
    changed = shell(
        *("jobs", "--queue", "default", "amend", "--priority", "5", "--to-queue", "slow"),
        *("--run-at", "1h", "--yes"),
    )
    assert changed.code == 0
    job = shell.store.job(job_id)
    assert (job.priority, job.queue, job.stage) == (5, "slow", "scheduled")
    assert shell("jobs", "--queue", "slow", "delete", "--yes").code == 0
    assert shell.store.store.read([job_id]) == {}


def test_a_job_is_deleted_by_its_id(shell: Shell) -> None:
    first, second = shell.store.add(), shell.store.add()
    shell.store.claim_one()
    line = shell.refused("job", "delete", str(second), str(first), code=1)
    assert "cancel it, and delete it when it has ended" in line
    assert shell("job", "delete", str(second)).out == f"job {second} is deleted\n"
    assert "there is no job" in shell.refused("job", "delete", str(second), code=1)


@pytest.mark.parametrize(
    ("args", "code", "expected"),
    [
        (("jobs", "cancel", "--yes"), 2, "at least one field"),
        (("jobs", "--queue", "q", "retry", "--yes"), 2, "name the states"),
        (("jobs", "--queue", "q", "amend", "--yes"), 2, "amend needs"),
        (("jobs", "--queue", "q", "cancel", "--json"), 2, "--yes"),
        (("jobs", "--queue", "q", "explode"), 2, "explode"),
        (("jobs", "--queue", "q", "amend", "--priority", "99999", "--yes"), 2, "priority"),
        (("bulk", "show", "7"), 1, "no bulk operation 7"),
        (("bulk", "stop", "0"), 1, "no bulk operation 0"),
    ],
)
def test_what_would_be_a_mistake_is_refused(
    shell: Shell, args: tuple[str, ...], code: int, expected: str
) -> None:
    assert expected in shell.refused(*args, code=code)
