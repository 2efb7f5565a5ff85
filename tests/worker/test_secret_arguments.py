"""Secret arguments in child processes, and in the texts of errors that quote them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Any

import pytest

from freehold import Fail, Freehold, Retry, Secret, TaskGroup
from freehold.model.outcome import Outcome
from freehold.model.secrets import hide_arguments, hide_texts, secret_texts
from freehold.worker.execution.runner import Runner
from freehold.worker.held_leases import HeldLease

VALUE = "hunter2 \\ 'and' \"more\""
#: Longer than any limit of a text, so that each limit is inside of it.
LONG = "".join(f"part{number}." for number in range(2_000))
tasks = TaskGroup()
long_tasks = TaskGroup()


@tasks.task(isolation="process", retry=Retry(max_attempts=1))
def leaky(password: Annotated[dict[str, str], Secret]) -> None:
    raise ValueError(f"{password} and {password['key']} are wrong")


@pytest.mark.requirement("N7")
def test_the_error_of_a_child_process_quotes_no_secret(tmp_path: Path) -> None:
    with contextlib.closing(Freehold(str(tmp_path / "jobs.db"))) as app:
        app.include(tasks)
        job = leaky.enqueue({"key": VALUE, "other-key": "other-value"})
        assert app.run_worker(until_idle=True) == 0
        found = app.operator.show(job.id)
    assert found.job.report is not None
    assert found.job.report.error is not None
    assert "[secret] are wrong" in found.job.report.error.message
    for part in ("hunter2", "other-key", "other-value"):
        assert part not in repr(found)


@long_tasks.task(retry=Retry(max_attempts=1))
def refuses(token: Annotated[str, Secret]) -> None:
    raise ValueError(f"bad token {token}")


@long_tasks.task(retry=Retry(max_attempts=1), isolation="process")
def refuses_in_a_child(token: Annotated[str, Secret]) -> None:
    raise ValueError(f"bad token {token}")


@long_tasks.task
def fails(token: Annotated[str, Secret]) -> None:
    raise Fail(f"bad token {token}")


@pytest.mark.requirement("N7")
def test_a_secret_that_is_longer_than_a_text_may_be_is_not_shown_in_part(tmp_path: Path) -> None:
    with contextlib.closing(Freehold(str(tmp_path / "jobs.db"))) as app:
        app.include(long_tasks)
        jobs = [task.enqueue(LONG) for task in (refuses, refuses_in_a_child, fails)]
        assert app.run_worker(until_idle=True) == 0
        found = [app.operator.show(job.id) for job in jobs]
    for each in found:
        assert each.job.reason is not None
        assert "bad token [secret]" in each.job.reason
        assert "part1" not in repr(each)


@pytest.mark.requirement("N7")
def test_an_internal_error_that_quotes_a_secret_is_stored_and_logged_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_runner: Runner, lease: HeldLease) -> Outcome | None:
        raise RuntimeError(lease.attempt.args)

    def takes(token: Annotated[str, Secret]) -> None: ...

    monkeypatch.setattr(Runner, "run", broken)
    with contextlib.closing(Freehold(str(tmp_path / "jobs.db"))) as app:
        job = app.task(name="takes", retry=Retry(max_attempts=1))(takes).enqueue(LONG)
        assert app.run_worker(until_idle=True) == 0
        found = app.operator.show(job.id)
    assert found.job.reason is not None
    assert "RuntimeError" in found.job.reason
    assert "part1" not in repr(found) + caplog.text


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        ('{"a":1,"b":"secret"}', '{"a":1,"b":"[secret]"}'),
        ('{"b":null}', '{"b":"[secret]"}'),
        ('{"a":1}', '{"a":1}'),
        ("[1]", '"[secret]"'),
        ("no JSON", '"[secret]"'),
    ],
)
def test_arguments_that_cannot_be_read_are_hidden_as_a_whole(args: str, shown: str) -> None:
    assert hide_arguments(args, ("b",)) == shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('"long-one"', "it is long-one"),
        ("84372165", "it is 84372165"),
        ('["long-one", {"inner-key": [1.0625]}]', "long-one inner-key 1.0625"),
        ('"caf\\u00e9 \\"x\\""', 'café "x" and caf\\u00e9'),
    ],
)
def test_a_quoted_value_is_replaced_in_a_text(value: str, text: str) -> None:
    hidden = hide_texts(text, secret_texts(f'{{"b": {value}}}', ("b",)))
    assert "[secret]" in hidden
    assert not any(
        part in hidden for part in ("long-one", "inner-key", "84372165", "1.0625", "café")
    )


def test_a_very_short_value_is_not_searched_for() -> None:
    """It would be found inside of words that have nothing to do with it."""
    values: Any = secret_texts('{"b": ["ab", 1, true, null]}', ("b",))
    assert hide_texts("about 1 cab, true", values) == "about 1 cab, true"
