"""`freehold job`: show, explain, cancel, pause, resume, retry, submit."""

from __future__ import annotations

import getpass
import re

import msgspec
import pytest

from freehold.model.job import ErrorInfo
from freehold.model.outcome import OutcomeKind
from freehold.store.types import LogChunk, NewLogLine, NewStep
from tests.cli.shell import Shell
from tests.stores import key_of

LARGE = str(2**63)
VERBS = ("cancel", "pause", "resume", "retry", "submit")


@pytest.mark.requirement("S2.4", "S2.5")
def test_a_leased_job_is_shown_with_lease_and_masked_arguments(shell: Shell) -> None:
    store = shell.store
    job = store.add(task="shop.send", target="account-42", args=b'{"to":"swordfish"}', tags=("eu",))
    attempt = store.claim_one("web-1")
    out = shell("job", "show", str(job)).out
    for text in (
        f"job {job}  shop.send  assigned",
        "account-42",
        "eu",
        "1 of 15",
        f"web-1, token {attempt.token}, ends in",
        "heartbeat",
        "to=•••  (--args shows them)",
        "created",
        "leased",
    ):
        assert text in out
    assert "swordfish" not in out
    assert 'to="swordfish"' in shell("job", "show", str(job), "--args").out


@pytest.mark.parametrize(
    "args", [b'{"a":1e400}', b'{"a":' + b"[" * 3000 + b"]" * 3000 + b"}", b"[1]"]
)
def test_a_job_with_unreadable_arguments_is_shown(shell: Shell, args: bytes) -> None:
    """Other programs write to the database too."""
    job = shell.store.add(args=args)
    assert "unreadable  (--args shows the text)" in shell("job", "show", str(job)).out
    assert args.decode()[:20] in shell("job", "show", str(job), "--args").out
    document = shell("job", "show", str(job), "--args", "--json").json
    assert document[0]["job"]["args"] == args.decode()


@pytest.mark.requirement("S2.5")
def test_the_timeline_shows_events_with_time_author_and_reason(shell: Shell) -> None:
    store = shell.store
    job = store.add(max_attempts=2)
    error = ErrorInfo("ValueError", "no \x1b[31msuch\x07 page", "Traceback: somewhere")
    store.end(store.claim_one("web-1"), OutcomeKind.ERROR, error=error, delay_seconds=0.0)
    shell("job", "pause", str(job), "--by", "ann", "--reason", "look first")
    shell("job", "resume", str(job), "--by", "bob")
    store.end(store.claim_one("web-2"), OutcomeKind.FAIL, error=error, reason="hopeless")
    out = shell("job", "show", str(job)).out
    kinds = re.findall(r"\d\d:\d\d:\d\d\.\d{3} +(\w+)", out)
    assert kinds == ["created", "leased", "retried", "paused", "resumed", "leased", "failed"]
    assert "look first" in out
    assert "ValueError: no \N{REPLACEMENT CHARACTER}[31msuch\N{REPLACEMENT CHARACTER} page" in out
    assert "\x1b" not in out
    assert "hopeless" in out
    assert "Traceback: somewhere" not in out
    assert "Traceback: somewhere" in shell("job", "show", str(job), "--trace").out


@pytest.mark.requirement("S2.5")
def test_a_finished_job_shows_its_report(shell: Shell) -> None:
    store = shell.store
    job = store.add()
    store.end(store.claim_one(), OutcomeKind.SUCCESS, result=b'{"pages":3}', ran_seconds=1.5)
    out = shell("job", "show", str(job)).out
    for text in ("succeeded", '{"pages":3}', "waited", "ended"):
        assert text in out
    document = shell("job", "show", str(job), "--json").json[0]
    assert document["job"]["report"]["result"] == {"pages": 3}
    assert [entry["kind"] for entry in document["timeline"]][-1] == "succeeded"


def test_several_jobs_are_shown_in_the_order_of_the_arguments(shell: Shell) -> None:
    first, second = shell.store.add(args=b'{"a":1}'), shell.store.add()
    document = shell("job", "show", str(second), str(first), "--json").json
    assert [each["job"]["id"] for each in document] == [second, first]
    assert document[1]["job"]["args"] is None
    shown = shell("job", "show", str(first), "--json", "--args").json
    assert shown[0]["job"]["args"] == {"a": 1}


def test_explain_gives_causes_and_remedies(shell: Shell) -> None:
    job, pending = shell.store.add(), shell.store.add(pending=True)
    shell("queues", "pause", "default", "--reason", "deploy", "--by", "ann")
    out = shell("job", "explain", str(job), str(pending)).out
    assert "its queue default is paused by ann: deploy" in out
    assert "→ freehold queues resume default" in out
    assert "never put into the queue" in out
    document = shell("job", "explain", str(job), "--json").json
    assert [(each["id"], each["causes"][0]["code"]) for each in document] == [(job, "queue_paused")]


@pytest.mark.requirement("S4.5")
def test_cancel_reports_the_result_for_each_job(shell: Shell) -> None:
    leased = shell.store.add()
    shell.store.claim_one()
    waiting, done = shell.store.add(), shell.store.add()
    shell("job", "cancel", str(done))
    result = shell("job", "cancel", str(leased), str(waiting), str(done))
    assert result.out.splitlines() == [
        f"job {leased} is assigned; its worker was asked to cancel it",
        f"job {waiting} is canceled",
        f"job {done} is already canceled",
    ]
    assert shell("job", "cancel", str(done), "--json").json == [
        {"id": done, "status": "already", "state": "canceled"}
    ]


def test_canceling_a_succeeded_job_exits_with_1(shell: Shell) -> None:
    """A script must not take it for canceled."""
    job = shell.store.add()
    shell.store.end(shell.store.claim_one(), OutcomeKind.SUCCESS)
    other = shell.store.add()
    result = shell("job", "cancel", str(job), str(other))
    assert result.code == 1
    assert result.out.splitlines() == [
        f"job {job} has already succeeded and was not canceled",
        f"job {other} is canceled",
    ]
    assert shell("job", "cancel", str(job), "--json").code == 1


def test_author_and_reason_are_kept(shell: Shell) -> None:
    job = shell.store.add()
    shell("job", "pause", str(job), "--by", "ann", "--reason", "müde")
    shell("job", "resume", str(job))
    events = shell.store.store.events(job)
    assert [(event.by, event.reason) for event in events] == [
        ("ann", "müde"),
        (getpass.getuser(), None),
    ]


@pytest.mark.requirement("P5")
def test_pause_resume_cancel_and_retry(shell: Shell) -> None:
    job = str(shell.store.add())
    for verb, state in (
        ("pause", "paused"),
        ("resume", "queued"),
        ("cancel", "canceled"),
        ("retry", "queued"),
    ):
        results = shell("job", verb, job, "--json").json
        assert results == [{"id": int(job), "status": "done", "state": state}]


def test_a_pending_job_is_submitted_as_explain_advises(shell: Shell) -> None:
    job = str(shell.store.add(pending=True))
    assert f"→ freehold job submit {job}" in shell("job", "explain", job).out
    assert shell("job", "submit", job).out == f"job {job} is queued\n"
    assert shell("job", "submit", job).out == f"job {job} is already queued\n"


@pytest.mark.requirement("S0.1", "P5")
def test_illegal_transitions_are_refused_and_change_nothing(shell: Shell) -> None:
    store = shell.store
    done, queued, pending = store.add(), store.add(), store.add(pending=True)
    store.end(store.claim_one(), OutcomeKind.SUCCESS)
    for verb, job, expected in (
        ("resume", done, "is succeeded: only a paused or failed job can be resumed; `retry` runs"),
        ("pause", done, "is succeeded and cannot become paused; from succeeded it can become"),
        ("retry", queued, "is queued: only a finished job can be retried"),
        ("resume", pending, "is pending: only a paused or failed job can be resumed; `submit`"),
        ("pause", pending, "is pending and cannot become paused"),
        ("retry", pending, "is pending: only a finished job can be retried"),
    ):
        line = shell.refused("job", verb, str(job), code=1)
        assert line.startswith(f"job {job} {expected}")


@pytest.mark.requirement("S0.1")
def test_one_illegal_transition_among_several_refuses_all(shell: Shell) -> None:
    fine, done = shell.store.add(), shell.store.add()
    shell("job", "cancel", str(done))
    shell.refused("job", "pause", str(fine), str(done), code=1)
    shell.refused("job", "pause", str(fine), "999999", code=1)


@pytest.mark.parametrize("verb", ["show", "explain", *VERBS])
@pytest.mark.parametrize("job", ["999999", "0", LARGE])
def test_an_unknown_id_is_named(shell: Shell, verb: str, job: str) -> None:
    assert f"there is no job {job}" in shell.refused("job", verb, job, code=1)
    assert f"there is no job {job}" in shell.refused("job", verb, job, "--json", code=1)


@pytest.mark.parametrize("verb", ["show", "explain", *VERBS])
def test_an_id_that_is_not_a_number_is_bad_input(sqlite_shell: Shell, verb: str) -> None:
    assert "'x1' is not a valid integer" in sqlite_shell.refused("job", verb, "x1", code=2)
    assert "Missing argument" in sqlite_shell.refused("job", verb, code=2)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--reason", "x" * 501), "at most 500 characters"),
        (("--reason", "\udcff"), "not Unicode text"),
        (("--by", ""), "by ''"),
        (("--by", "\udcff"), "printable characters"),
    ],
)
def test_an_invalid_reason_or_author_is_refused(
    shell: Shell, verb: str, args: tuple[str, str], expected: str
) -> None:
    job = str(shell.store.add())
    assert expected in shell.refused("job", verb, job, *args, code=2)


@pytest.mark.requirement("S2.5")
def test_the_log_of_a_job_is_shown(shell: Shell) -> None:
    store = shell.store
    job = store.add()
    silent = store.add()
    attempt = store.claim_one()
    lines = (NewLogLine(1, "page one", 0.0), NewLogLine(2, "page \x1b[31mtwo", 0.0))
    store.store.append_log(attempt.owner, [LogChunk(key_of(attempt), None, lines)])
    out = shell("job", "show", str(job)).out
    assert re.search(r"\d\d:\d\d:\d\d\.\d{3} +page one", out)
    assert "page \N{REPLACEMENT CHARACTER}[31mtwo" in out
    document = shell("job", "show", str(job), "--json").json[0]
    assert [line["line"] for line in document["log"]] == ["page one", "page \x1b[31mtwo"]
    assert {line["token"] for line in document["log"]} == {attempt.token}
    assert " log" not in shell("job", "show", str(silent)).out


def test_a_reason_cannot_forge_lines_or_drive_the_terminal(shell: Shell) -> None:
    job = shell.store.add()
    reason = "no\r\njob 2\n  it has failed \x7f\x9b\u202e\U000e0001"
    shell("job", "pause", str(job), "--reason", reason)
    lines = shell("job", "explain", str(job)).out.splitlines()
    assert len(lines) == 3
    assert "it is paused: no job 2 it has failed" in lines[1]
    printed = shell("job", "explain", str(job), "--json").out
    assert printed.replace("\n", "").isprintable()
    assert msgspec.json.decode(printed)[0]["causes"][0]["text"] == f"it is paused: {reason}"


def test_a_waiting_job_is_amended(shell: Shell) -> None:
    job_id = shell.store.add()
    out = shell("job", "amend", str(job_id), "--priority", "3", "--max-attempts", "2").out
    assert out == f"job {job_id} is amended\n"
    job = shell.store.job(job_id)
    assert (job.priority, job.max_attempts) == (3, 2)
    assert "amend needs a priority" in shell("job", "amend", str(job_id)).err


def test_a_job_is_cloned_with_other_arguments(shell: Shell) -> None:
    job_id = shell.store.add(args=b'{"n":1}')
    made = shell("job", "clone", str(job_id), "--args", '{"n": 2}', "--json").json
    assert made["cloned_from"] == job_id
    assert shell.store.job(made["id"]).args == '{"n":2}'
    assert "JSON" in shell("job", "clone", str(job_id), "--args", "{").err


def test_a_job_is_retried_from_a_step(shell: Shell) -> None:
    store = shell.store
    job_id = store.add()
    attempt = store.claim_one()
    steps = [NewStep(key_of(attempt), name, at) for at, name in enumerate(("charge", "it's"), 1)]
    store.store.put_steps(attempt.owner, steps)
    store.end(attempt, OutcomeKind.PAUSE)
    asked = ("job", "retry", str(job_id), "--from")
    assert "its steps are 'charge'" in shell.refused(*asked, "x", code=2)
    assert "exclude each other" in shell.refused(*asked, "charge", "--dry-run", code=2)
    assert "give one job, not 2" in shell.refused(*asked, "charge", str(job_id + 1), code=2)
    assert shell(*asked, "it's").out == f"job {job_id} is queued\n"
    assert [step.name for step in store.store.read_steps(job_id)] == ["charge"]
    assert 'from step "it\'s"' in shell("job", "show", str(job_id)).out
