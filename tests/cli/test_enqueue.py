"""`freehold enqueue`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from freehold.model.job import Job
from freehold.store.types import JobFilter
from tests.cli.shell import Shell, run

APP = ("--app", "tests.cli.shop:app")


def enqueued(shell: Shell, *args: str) -> Job:
    result = shell("enqueue", *args, "--json").json
    assert result["created"] is True
    return shell.store.job(result["id"])


def test_a_job_is_stored(shell: Shell) -> None:
    result = shell("enqueue", "shop.send", "to=ann", "--queue", "mail")
    assert (result.code, result.err) == (0, "")
    job = shell.store.store.page(JobFilter()).jobs[0]
    unchecked = "; without --app neither its task nor its arguments were checked"
    assert result.out == f"job {job.id} of shop.send is in queue mail{unchecked}\n"
    assert (job.task, job.queue, job.args) == ("shop.send", "mail", '{"to":"ann"}')


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("x=5", 5),
        ("x=-1.5e3", -1500.0),
        ("x=true", True),
        ("x=null", None),
        ("x=Ann", "Ann"),
        ("x=", ""),
        ("x=a=b", "a=b"),
        ("x=007", "007"),
        ('x="5"', "5"),
        ("x=[1, 2]", [1, 2]),
        ('x={"a": "✓"}', {"a": "✓"}),
        ("x=2030-01-01", "2030-01-01"),
    ],
)
def test_a_value_is_json_if_it_parses_as_json(
    sqlite_shell: Shell, pair: str, value: object
) -> None:
    job = enqueued(sqlite_shell, "t", pair)
    assert json.loads(job.args) == {"x": value}


def test_all_arguments_as_one_document(shell: Shell) -> None:
    job = enqueued(shell, "t", "--args", '{"to": "ann", "lines": [{"n": 1.0}]}')
    assert job.args == '{"to":"ann","lines":[{"n":1.0}]}'


def test_all_options_are_stored(shell: Shell) -> None:
    job = enqueued(
        shell,
        "t",
        "--queue",
        "q",
        "--priority",
        "-7",
        "--run-at",
        "2050-01-01T00:00:00+02:00",
        "--target",
        "account-42",
        "--limit-key",
        "k",
        "--unique-key",
        "u",
        "--idempotency-key",
        "i",
        "--max-attempts",
        "9",
        "--timeout",
        "2m",
        "--tag",
        "a",
        "--tag",
        "b",
    )
    assert (job.queue, job.priority, job.target, job.unique_key) == ("q", -7, "account-42", "u")
    assert job.limit_key == "k"
    assert (job.max_attempts, job.timeout_seconds, job.tags) == (9, 120, ("a", "b"))
    assert job.run_at.isoformat() == "2049-12-31T22:00:00+00:00"


@pytest.mark.requirement("N6")
def test_metadata_is_typed_stored_and_shown(shell: Shell) -> None:
    job = enqueued(shell, "t", "--meta", "order=7", "--meta", "who=Ann", "--meta", 'zip="07"')
    assert job.meta == {"order": 7, "who": "Ann", "zip": "07"}
    shown = shell("job", "show", str(job.id)).out
    assert '{"order":7,"who":"Ann","zip":"07"}' in shown
    assert shell("job", "show", str(job.id), "--json").json[0]["job"]["meta"] == job.meta


@pytest.mark.requirement("N4")
def test_a_job_that_waits_gets_the_values_of_the_last_call(shell: Shell) -> None:
    options = ("--unique-key", "k", "--unique-until", "start", "--replace", "args")
    first = enqueued(shell, "t", "n=1", *options)
    result = shell("enqueue", "t", "n=2", *options)
    assert result.out == f"job {first.id} waits with this key, and got the values of this call\n"
    assert shell.store.job(first.id).args == '{"n":2}'
    debounced = ("--debounce-key", "k", "--debounce-seconds", "5m")
    job = enqueued(shell, "t", *debounced, "--debounce-at-most-seconds", "1h")
    assert (job.run_at - job.created_at).total_seconds() == 300
    assert shell("enqueue", "t", *debounced, "--json").json["replaced"]
    throttled = ("--throttle-key", "k", "--throttle-seconds", "60")
    at_once = enqueued(shell, "t", *throttled)
    assert at_once.stage == "ready"
    assert "throttle/t/k" in shell("job", "show", str(at_once.id)).out


def test_a_job_can_have_a_time_to_start_by(shell: Shell) -> None:
    job = enqueued(shell, "t", "--start-by", "2h", "--delay", "1h")
    assert job.start_by == job.run_at + timedelta(hours=2)
    job = enqueued(shell, "t", "--start-by", "2050-01-31T12:00:00Z")
    assert job.start_by == datetime(2050, 1, 31, 12, tzinfo=UTC)
    shown = shell("job", "show", str(job.id)).out
    assert "start by" in shown
    assert "then it is canceled" in shown
    assert shell("job", "show", str(job.id), "--json").json[0]["job"]["start_by"]
    assert "it must start by 2050-01-31" in shell("job", "explain", str(job.id)).out


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("1.5", 1.5), ("5m", 300), ("2h", 7200), ("1d", 86400)]
)
def test_a_delay_has_a_unit(sqlite_shell: Shell, text: str, seconds: float) -> None:
    job = enqueued(sqlite_shell, "t", "--delay", text)
    assert (job.run_at - job.created_at).total_seconds() == seconds


@pytest.mark.requirement("S4.1")
def test_a_pending_job_is_stored_and_not_claimed(shell: Shell) -> None:
    result = shell("enqueue", "t", "--pending")
    assert "is stored and pending" in result.out
    assert shell.store.claim() == []
    assert enqueued(shell, "t", "--pending").state == "pending"


@pytest.mark.requirement("P9", "S0.18")
@pytest.mark.parametrize("option", ["--unique-key", "--idempotency-key"])
def test_a_taken_key_returns_the_job_that_has_it(shell: Shell, option: str) -> None:
    first = enqueued(shell, "t", option, "k").id
    result = shell("enqueue", "t", option, "k", "--json").json
    assert (result["id"], result["created"], result["replaced"]) == (first, False, False)
    result = shell("enqueue", "t", option, "k")
    assert result.out == f"job {first} exists already with this key; no job was added\n"


def test_with_an_app_the_tasks_own_options_apply(shell: Shell) -> None:
    job = enqueued(shell, "shop.send", "to=ann", *APP)
    assert (job.queue, job.max_attempts, job.timeout_seconds) == ("mail", 3, 30)
    assert job.tags == ("shop",)
    changed = enqueued(shell, "shop.send", "to=ann", *APP, "--queue", "slow", "--max-attempts", "8")
    assert (changed.queue, changed.max_attempts, changed.timeout_seconds) == ("slow", 8, 30)


def test_with_an_app_the_rest_of_the_arguments_can_be_given(shell: Shell) -> None:
    job = enqueued(shell, "shop.render", "page=1", "pages=[2,3]", *APP)
    assert job.args == '{"page":1,"pages":[2,3]}'


@pytest.mark.parametrize(
    ("args", "code", "expected"),
    [
        (("shop.sent", "to=ann", *APP), 2, ["no task is called 'shop.sent'", "shop.send?"]),
        (("zzz", *APP), 2, ["no task is called 'zzz'", "known: shop.render, shop.send"]),
        (("shop.send", *APP), 2, ["shop.send", "missing required field `to`", "(to: str"]),
        (("shop.send", "to=5", *APP), 2, ["Expected `str`, got `int` - at `to`"]),
        (("shop.send", "to=a", "cc=b", *APP), 2, ["unknown field `cc`", "it takes (to: str"]),
        (("shop.send", "--args", "{}", "to=a"), 2, ["not by both", "freehold enqueue --help"]),
        (("t", "a=1", "a=2"), 2, ["given twice"]),
        (("t", "--meta", "a=1", "--meta", "a=2"), 2, ["given twice"]),
        (("t", "--meta", "a"), 2, ["meta 'a' is not key=value"]),
        (("t", "--meta", "a=[1]"), 2, ["meta['a'] is nested"]),
        (("t", "--unique-until", "start"), 2, ["need a unique_key"]),
        (("t", "--debounce-key", "k"), 2, ["belong together"]),
        (("t", "value"), 2, ["'value' is not key=value"]),
        (("t", "=value"), 2, ["'=value' is not key=value"]),
        (("t", "--args", "{'a': 1}"), 2, ["--args for task t is not JSON"]),
        (("t", "--args", '{"a": NaN}'), 2, ["--args for task t is not JSON"]),
        (("t", "--args", '{"a": Infinity}'), 2, ["not JSON"]),
        (("t", "--args", '{"a": 1e999}'), 2, ["not JSON"]),
        (("t", "--args", "[1]"), 2, ["not a JSON object", "by name"]),
        (("t", "--args", ""), 2, ["not JSON"]),
        (("t", "a=NaN"), 2, ["a=NaN: JSON has no such number"]),
        (("t", "a={"), 2, ["a is not JSON"]),
        (("t", "--args", '{"a": "\\u0000"}'), 2, ["holds a NUL character", "remove it"]),
        (("t", "--args", '{"a": "\\ud800"}'), 2, ["not JSON"]),
        (("t", "a=\udcff"), 2, ["lone surrogate"]),
        (("t", 'a="\\u0000"'), 2, ["holds a NUL character"]),
        (("t", "a=" + "[" * 65 + "]" * 65), 2, ["deeper than 64 levels", "flatten it"]),
        (("t", "--args", '{"a":' * 5000 + "1" + "}" * 5000), 2, ["deeper than 64 levels"]),
        (("t", "a=" + "x" * 1024 * 1024), 2, ["the limit is 1,048,576", "pass a reference"]),
        (("a task",), 2, ["task 'a task' is not a usable name"]),
        (("t", "--queue", "q;drop"), 2, ["queue 'q;drop' is not a usable name"]),
        (("t", "--tag", "ü"), 2, ["tag 'ü' is not a usable name"]),
        (("t", "--target", "\x1b[31m"), 2, ["target", "printable characters"]),
        (("t", "--unique-key", ""), 2, ["unique_key ''"]),
        (("t", "--priority", "40000"), 2, ["priority=40000", "higher runs first"]),
        (("t", "--priority", "high"), 2, ["'high' is not a valid integer", "--priority"]),
        (("t", "--max-attempts", "0"), 2, ["max_attempts=0: give 1 to"]),
        (("t", "--timeout", "0"), 2, ["timeout=0.0: give at least 0.001 seconds"]),
        (("t", "--delay", "soon"), 2, ["'soon' is not a duration", "90, 90s, 5m"]),
        (("t", "--delay", "99999d"), 2, ["at most ten years"]),
        (("t", "--run-at", "tomorrow"), 2, ["'tomorrow' is not a time", "2030-01-31T12:00:00Z"]),
        (("t", "--run-at", "2030-01-01T00:00:00"), 2, ["has no time zone", "add Z"]),
        (("t", "--run-at", "9999-12-31T23:59:59Z"), 2, ["1900 to 9000"]),
        (("t", "--run-at", "2030-01-01T00:00:00Z", "--delay", "5"), 2, ["exclude each other"]),
        (("t", "--start-by", "soon"), 2, ["'soon' is not a time"]),
        (("t", "--start-by", "0"), 2, ["start_by=0.0", "at least 0.001 seconds"]),
        (("t", "--start-by", "2030-01-01T00:00:00Z", "--delay", "5"), 2, ["excludes delay"]),
        (("t", "--colour", "red"), 2, ["No such option", "--colour"]),
        ((), 2, ["Missing argument 'TASK'"]),
    ],
)
def test_bad_input_changes_nothing(
    shell: Shell, args: tuple[str, ...], code: int, expected: list[str]
) -> None:
    line = shell.refused("enqueue", *args, code=code)
    for text in expected:
        assert text in line


def test_the_url_of_the_store_can_come_from_the_environment(shell: Shell) -> None:
    result = run("enqueue", "t", "--json", env={"FREEHOLD_URL": shell.url})
    assert shell.store.job(result.json["id"]).task == "t"
