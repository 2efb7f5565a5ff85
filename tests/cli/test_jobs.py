"""`freehold jobs`: listing, filtering, paging."""

from __future__ import annotations

import pytest

from freehold.model.job import ErrorInfo, Job
from freehold.model.limit import Limit, Rate
from freehold.model.outcome import OutcomeKind
from freehold.operations import lists
from freehold.store.verbs import queries
from tests.cli.shell import Shell


def ids(shell: Shell, *args: str) -> list[int]:
    return [job["id"] for job in shell("jobs", *args, "--json").json["jobs"]]


def test_an_empty_list_as_text_and_json(shell: Shell) -> None:
    assert shell("jobs").out == "no jobs\n"
    assert shell("jobs", "--json").json == {"jobs": [], "next": None, "looked_until": None}


def test_each_filter_finds_what_it_names(shell: Shell) -> None:
    store = shell.store
    plain = store.add()
    mail = store.add(queue="mail")
    other = store.add(task="other")
    lane = store.add(target="account-42")
    tagged = store.add(tags=("eu",))
    store.end(store.claim_one(), OutcomeKind.SUCCESS)
    assert ids(shell) == [tagged, lane, other, mail, plain]
    assert ids(shell, "--queue", "mail") == [mail]
    assert ids(shell, "--task", "other") == [other]
    assert ids(shell, "--target", "account-42") == [lane]
    assert ids(shell, "--tag", "eu") == [tagged]
    assert ids(shell, "--state", "succeeded") == [plain]
    assert ids(shell, "--state", "succeeded", "--state", "queued", "--queue", "default") == [
        tagged,
        lane,
        other,
        plain,
    ]
    assert ids(shell, "--state", "failed") == []


def test_pages_follow_each_other_without_gap_or_repetition(shell: Shell) -> None:
    expected = [shell.store.add() for _ in range(25)][::-1]
    seen: list[int] = []
    before: list[str] = []
    for size in (10, 10, 5):
        page = shell("jobs", "--limit", "10", *before, "--json").json
        assert len(page["jobs"]) == size
        seen += [job["id"] for job in page["jobs"]]
        before = ["--before", str(page["next"])]
    assert seen == expected
    assert page["next"] is None


def test_the_table_ends_with_the_option_for_the_next_page(shell: Shell) -> None:
    newest = [shell.store.add() for _ in range(3)][-1]
    result = shell("jobs", "--limit", "1")
    assert result.out.rstrip().endswith(f"; more: --before {newest}")


@pytest.mark.requirement("N6", "N16")
def test_metadata_is_a_filter(shell: Shell) -> None:
    number = shell.store.add(meta_json='{"order":7,"who":"Ann"}')
    text = shell.store.add(meta_json='{"order":"7"}')
    assert ids(shell, "--meta", "order=7") == [number]
    assert ids(shell, "--meta", 'order="7"') == [text]
    assert ids(shell, "--meta", "order=7", "--meta", "who=Ann") == [number]
    assert ids(shell, "--meta", "order=7", "--meta", "who=Bob") == []


@pytest.mark.requirement("N16")
def test_errors_workers_and_times_are_filters(shell: Shell) -> None:
    store = shell.store
    failed, done = store.add(), store.add()
    first, second = store.claim(count=2)
    store.end(first, OutcomeKind.FAIL, error=ErrorInfo("builtins.ValueError", "no"))
    store.end(second, OutcomeKind.SUCCESS)
    waiting = store.add()
    assert ids(shell, "--error", "ValueError") == [failed]
    assert ids(shell, "--worker", "w1") == [done, failed]
    assert ids(shell, "--created-since", "1h") == [waiting, done, failed]
    assert ids(shell, "--created-since", "1900-01-01T00:00:00Z", "--created-until", "1h") == []
    assert ids(shell, "--finished-since", "1h") == [done, failed]
    assert ids(shell, "--finished-until", "2100-01-01T00:00:00Z") == [done, failed]


@pytest.mark.requirement("N16")
def test_a_page_of_a_rare_filter_says_how_far_it_looked(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty list of a bounded read is not a list of all jobs."""
    monkeypatch.setattr(queries, "PAGE_WINDOW", 1)
    monkeypatch.setattr(lists, "READS_LIMIT", 2)
    shell.store.add(task="rare")
    for _ in range(3):
        shell.store.add()
    text = " ".join(shell("jobs", "--task", "rare").out.split())
    assert "looked at jobs created since 20" in text
    page = shell("jobs", "--task", "rare", "--json").json
    assert (page["jobs"], page["next"] is None, page["looked_until"] is None) == ([], False, False)


def test_a_full_page_with_nothing_after_it_is_the_last(shell: Shell) -> None:
    done, _waiting = shell.store.add(), shell.store.add()
    shell("job", "cancel", str(done))
    assert "more:" not in shell("jobs", "--limit", "2").out
    assert "more:" in shell("jobs", "--limit", "1").out
    last = shell("jobs", "--limit", "1", "--state", "canceled", "--json").json
    assert ([job["id"] for job in last["jobs"]], last["next"]) == ([done], None)


@pytest.mark.requirement("S2.3", "S2.4")
def test_the_table_shows_states_attempts_and_times(shell: Shell) -> None:
    store = shell.store
    running = store.add(task="shop.send", target="account-42", max_attempts=3)
    later = store.add(delay_seconds=7200.0)
    store.claim()
    lines = {line.split()[0]: line for line in shell("jobs").out.splitlines() if line}
    assert lines["id"].split() == ["id", "task", "queue", "state", "try", "age", "when", "target"]
    leased = lines[str(running)]
    for text in ("shop.send", "default", "assigned", "1/3", "lease ends in", "account-42"):
        assert text in leased
    assert "queued" in lines[str(later)]
    assert "due in" in lines[str(later)]


def test_the_table_says_what_a_queued_job_waits_for(shell: Shell) -> None:
    store = shell.store
    first, second = store.add(target="lane"), store.add(target="lane")
    store.store.set_key_limit("vendor", Limit(0))
    store.store.pause_lane("held", "ann", None, None)
    limited, held = store.add(limit_key="vendor"), store.add(target="held")
    parked, later = store.add(task="unknown"), store.add(delay_seconds=7200.0)
    assert len(store.claim(tasks=frozenset({"t"}))) == 1
    third, plain = store.add(target="lane"), store.add()
    rows = {line.split()[0]: line for line in shell("jobs").out.splitlines()[2:]}
    assert "lease ends in" in rows[str(first)]
    for job_id in (second, third):
        assert f"behind job {first} " in rows[str(job_id)]
    for job_id, text in (
        (limited, "at the limit of vendor"),
        (held, "its lane is paused"),
        (parked, "parked: the claiming worker does not know this task"),
        (later, "due in 2 h"),
        (plain, "due"),
    ):
        assert text in rows[str(job_id)], rows


def test_a_job_of_a_queue_that_may_not_start_any_is_not_shown_as_due(shell: Shell) -> None:
    store = shell.store
    store.store.pause_queue("held", "ann", None, None)
    store.store.set_queue_limit("full", Limit(1))
    store.store.set_queue_limit("spent", Limit(None, Rate(1, 3600.0)))
    store.add(queue="full")
    store.add(queue="spent")
    store.claim(queue="full")
    store.claim(queue="spent")
    expected = {"held": "its queue is paused", "full": "at the limit of its queue"}
    expected |= {"spent": "at the rate of its queue", "default": "due"}
    jobs = {store.add(queue=queue): text for queue, text in expected.items()}
    rows = {line.split()[0]: line for line in shell("jobs").out.splitlines()[2:]}
    for job_id, text in jobs.items():
        assert text in rows[str(job_id)], rows
    store.store.pause_queue("*", "ann", None, None)
    assert shell("jobs").out.count("all queues are paused") == 1  # its own queue is named first


def test_arguments_are_shown_only_on_request(shell: Shell) -> None:
    shell.store.add(args=b'{"secret":"swordfish"}')
    assert "swordfish" not in shell("jobs").out
    assert shell("jobs", "--json").json["jobs"][0]["args"] is None
    shown = shell("jobs", "--json", "--args").json["jobs"][0]
    assert shown["args"] == {"secret": "swordfish"}


def test_a_target_cannot_drive_the_terminal_or_the_markup(shell: Shell) -> None:
    shell.store.add(target="[bold]x[/bold]")
    assert "[bold]x[/bold]" in shell("jobs").out


def test_a_json_document_has_every_field_of_a_job(shell: Shell) -> None:
    shell.store.add(tags=("a",))
    job = shell("jobs", "--json").json["jobs"][0]
    # The policy is stored as JSON text and shown as a document.
    assert set(job) == {*Job.__struct_fields__, "policy"} - {"policy_json"}
    assert (job["state"], job["stage"]) == ("queued", "ready")
    assert (job["tags"], job["policy"]) == (["a"], {})
    assert job["created_at"].endswith("Z")


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--state", "happy"), ["'happy' is not one of", "queued"]),
        (("--limit", "0"), ["--limit", "1<=x<=1000"]),
        (("--limit", "1001"), ["--limit"]),
        (("--before", "x"), ["--before", "not a valid integer"]),
        (("--before", "0"), ["before=0", "`next`"]),
        (("--before", str(2**63)), ["before=9223372036854775808"]),
        (("--queue", "a b"), ["queue 'a b' is not a usable name"]),
        (("--task", "\udcff"), ["task", "is not a usable name"]),
        (("--tag", ""), ["tag ''"]),
        (("--target", "\n"), ["target", "printable"]),
        (("--error", ""), ["error ''"]),
        (("--meta", "a"), ["meta 'a' is not key=value"]),
        (("--meta", "a=[1]"), ["meta['a'] is nested"]),
        (("--worker", "\n"), ["worker", "printable"]),
        (("--created-since", "yesterday"), ["'yesterday' is not a time"]),
        (("--finished-until", "2030-01-01T00:00:00"), ["no time zone"]),
        (("--created-since", "999999999999d"), ["more than 100 years ago"]),
        (("--created-since", "1h", "--created-until", "2h"), ["no job can match"]),
        (("extra",), ["No such command 'extra'"]),
    ],
)
def test_an_invalid_filter_is_refused(
    shell: Shell, args: tuple[str, ...], expected: list[str]
) -> None:
    line = shell.refused("jobs", *args, code=2)
    for text in expected:
        assert text in line


def test_a_parked_job_shows_what_it_waits_for(shell: Shell) -> None:
    """Not as due: no worker may claim it."""
    store = shell.store
    store.add(task="strange")
    store.claim(tasks=frozenset({"t"}))
    store.add()
    store.end(store.claim_one(), OutcomeKind.MISFIT, reason="no field d", delay_seconds=60.0)
    table = " ".join(shell("jobs").out.split())
    assert "parked: the claiming worker does not know this task" in table
    assert "parked: waits for a worker whose code fits (at most 60 s): no field d" in table
    assert " due" not in table


def test_a_search_is_another_way_to_write_the_filter(shell: Shell) -> None:
    mail, _ = shell.store.add(queue="mail"), shell.store.add(queue="other")
    assert ids(shell, "state:queued queue:mail") == [mail]
    assert ids(shell, "state:queued", "queue:mail") == [mail]
    assert ids(shell, "--state", "queued", "queue:mail") == [mail]
    assert ids(shell, "queue:mail state:failed") == []
    assert "did you mean queue:?" in shell("jobs", "quue:mail").err
    assert "queue was given twice" in shell("jobs", "--queue", "mail", "queue:mail").err


def test_a_verb_reaches_the_jobs_of_a_search(shell: Shell) -> None:
    mail, other = shell.store.add(queue="mail"), shell.store.add(queue="other")
    shell("jobs", "queue:mail", "cancel", "--yes", "--reason", "as asked: all")
    assert (shell.store.state(mail), shell.store.state(other)) == ("canceled", "queued")
