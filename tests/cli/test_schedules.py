"""`freehold schedules`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from freehold.model.job import NewJob
from freehold.model.schedule import ScheduleDefinition
from freehold.model.timing import Cron, Every
from tests.cli.shell import Shell


def put(shell: Shell, name: str = "books", app: str | None = None, **changes: Any) -> None:
    values = {"timing": Every(hours=1), "job": NewJob(task="t"), **changes}
    definition = ScheduleDefinition(name=name, **values)
    if app is None:
        shell.store.store.put_schedule(definition, "ann")
    else:
        shell.store.store.declare_schedules(app, [definition])


def tick(shell: Shell) -> None:
    """As if an hour had passed: a sweep fires."""
    hour = timedelta(hours=1)
    shell.store.store.change_schedule(
        "books",
        lambda schedule, now: msgspec.structs.replace(
            schedule, anchor_at=now - hour, counted_to=now - hour, next_at=now
        ),
    )
    assert shell.store.store.fire_schedules(100, 0.5).seen == 1


def test_an_empty_list_states_what_to_do(shell: Shell) -> None:
    assert shell("schedules").out.startswith("no schedules: declare one with @app.cron(...)")
    assert shell("schedules", "--json").json == {"schedules": [], "next": None}


@pytest.mark.requirement("N2")
def test_a_skip_is_shown_loudly_with_the_job_it_waited_for(shell: Shell) -> None:
    put(shell)
    tick(shell)
    assert "active" in shell("schedules").out
    (job_id,) = [row[0] for row in shell.store.sql("select id from {s}job")]
    shell("job", "pause", str(job_id), "--by", "ann")
    tick(shell)
    out = shell("schedules").out
    assert "skipping" in out
    assert f"SKIPS: waits for job {job_id} (paused)" in out
    assert "1 tick skipped" in out
    (listed,) = shell("schedules", "--json").json["schedules"]
    assert (listed["skipped"], listed["skipped_for"]) == (1, job_id)
    assert f"waits for job {job_id} (paused)" in shell("top", "--once").out
    doctor = shell("doctor")
    assert doctor.code == 1
    assert f"books waits for job {job_id} (paused) and has skipped 1 tick" in doctor.out
    assert "see freehold schedules show books" in doctor.out
    shown = shell("schedules", "show", "books").out
    assert shown.startswith("schedule books  skipping\n  time        every 1 h\n")
    assert ", 1 skipped, 0 missed\n" in shown
    assert f"problem     books waits for job {job_id} (paused) and has skipped 1 tick" in shown
    assert shell("schedules", "show", "books", "--json").json["skipped_for"] == job_id


@pytest.mark.requirement("N1")
def test_a_schedule_that_no_worker_fires_is_a_finding(shell: Shell) -> None:
    put(shell)
    shell.store.store.change_schedule(
        "books",
        lambda schedule, now: msgspec.structs.replace(
            schedule,
            anchor_at=now - timedelta(hours=1, seconds=90),
            counted_to=now - timedelta(hours=1, seconds=90),
            next_at=now - timedelta(seconds=90),
        ),
    )
    for command in (("doctor",), ("schedules", "show", "books")):
        out = shell(*command).out
        assert "books is due since" in out
        assert "a worker must be alive to fire it" in out


@pytest.mark.requirement("N3")
def test_next_ticks_are_listed(shell: Shell) -> None:
    put(shell, timing=Cron("0 7 * * *", "Europe/Berlin"))
    lines = shell("schedules", "next", "books", "--count", "3").out.splitlines()
    assert len(lines) == 3
    assert all(line.endswith(":00:00 UTC") for line in lines)
    shell("schedules", "pause", "books")
    assert shell("schedules", "next", "books").out == (
        "schedule books is paused: it has no next tick\n"
    )


@pytest.mark.requirement("N3")
def test_a_pause_shows_its_author_and_reason(shell: Shell) -> None:
    put(shell)
    pause = shell("schedules", "pause", "books", "--reason", "audit", "--by", "ann")
    assert pause.out == "schedule books is paused\n"
    assert "paused by ann: audit" in shell("schedules").out
    assert shell("schedules", "resume", "books").out == "schedule books resumed\n"
    assert shell("schedules", "resume", "books").out == "schedule books was not paused\n"


@pytest.mark.requirement("N3")
def test_an_edit_is_shown_and_reset(shell: Shell) -> None:
    put(shell, app="shop.app")
    edited = shell("schedules", "edit", "books", "--cron", "0 7 * * *", "--zone", "Europe/Berlin",
                   "--overlap", "allow", "--jitter", "30s", "--by", "bob")  # fmt: skip
    assert edited.out.startswith("schedule books is changed; next tick: ")
    (listed,) = shell("schedules", "--json").json["schedules"]
    assert (listed["time"], listed["zone"]) == ("0 7 * * *", "Europe/Berlin")
    assert (listed["overlap"], listed["jitter_seconds"]) == ("allow", 30)
    assert "edited by bob" in shell("schedules").out
    assert shell("schedules", "edit", "books", "--zone", "UTC").code == 0
    assert shell("schedules", "reset", "books").out == "schedule books is as shop.app declares it\n"
    (listed,) = shell("schedules", "--json").json["schedules"]
    assert (listed["time"], listed["is_edited"]) == ("every 1 h", False)


@pytest.mark.requirement("N3", "N16")
def test_the_audit_has_the_reasons_of_all_changes(shell: Shell) -> None:
    put(shell, app="shop.app")
    now = shell.store.now()
    time = ("--since", (now - timedelta(hours=1)).isoformat(), "--until", now.isoformat())
    verbs: dict[str, tuple[str, ...]] = dict.fromkeys(("pause", "resume", "run", "reset"), ())
    verbs |= {"edit": ("--jitter", "30s"), "backfill": time, "drop": ()}
    for verb, more in verbs.items():
        change = shell("schedules", verb, "books", *more, "--reason", f"why {verb}", "--by", "ann")
        assert change.code == 0, change.err
    entries = shell("audit", "--kind", "schedule", "--by", "ann", "--json").json["entries"]
    assert {entry["via"] for entry in entries} == {"cli"}
    assert {entry["reason"] for entry in entries} == {f"why {verb}" for verb in verbs}


@pytest.mark.requirement("N3")
def test_run_now_also_while_paused(shell: Shell) -> None:
    put(shell)
    shell("schedules", "pause", "books")
    made = shell("schedules", "run", "books", "--json").json
    assert made["created"] is True
    shown = shell("job", "show", str(made["job"])).out
    assert "schedule:books" in shown
    assert "tick of" in shown
    again = shell("schedules", "run", "books").out
    assert again == f"job {made['job']} of schedule books is still live, so that none was made\n"


@pytest.mark.requirement("N3")
def test_a_backfill_and_its_repetition(shell: Shell) -> None:
    put(shell)
    now = shell.store.now()
    until = ("--until", now.isoformat())
    refused = shell("schedules", "backfill", "books", "--since", "2001-01-01T00:00:00Z", *until)
    assert "more than 1000 ticks" in refused.err
    since = (now - timedelta(hours=5.5)).isoformat()
    first = shell("schedules", "backfill", "books", "--since", since, *until)
    assert first.out == "6 ticks of schedule books: 6 new jobs\n"
    again = shell("schedules", "backfill", "books", "--since", since, *until)
    assert again.out == "6 ticks of schedule books: 0 new jobs\n"


def test_dropping_what_code_declares_states_that_it_returns(shell: Shell) -> None:
    put(shell, app="shop.app")
    dropped = shell("schedules", "drop", "books")
    assert dropped.out == "schedule books dropped\n"
    assert "the app shop.app declares it" in dropped.err
    assert shell("schedules", "list", "--json").json["schedules"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("next", "nope"), "there is no schedule nope"),
        (("pause", "nope"), "there is no schedule nope"),
        (("drop", "nope"), "there is no schedule nope"),
        (("run", "a b"), "not a usable name"),
        (("edit", "books"), "nothing to change"),
        (("edit", "books", "--cron", "0 0 30 2 *"), "never falls due"),
        (("edit", "books", "--cron", "0 7 * * *", "--zone", "Berlin"), "did you mean Europe/"),
        (("edit", "books", "--every", "1m", "--zone", "UTC"), "excludes"),
        (("edit", "books", "--zone", "UTC"), "is an interval"),
        (("reset", "books"), "no app declares"),
        (("pause", "books", "--until", "2001-01-01T00:00:00Z"), "give a time after"),
    ],
)
def test_wrong_input_is_refused_and_changes_nothing(
    shell: Shell, arguments: tuple[str, ...], message: str
) -> None:
    put(shell)
    before = shell.store.everything()
    result = shell("schedules", *arguments)
    assert result.code in (1, 2)
    assert message in result.err
    assert shell.store.everything() == before
