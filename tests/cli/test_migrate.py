"""`freehold migrate` and `freehold doctor`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from freehold.cli import main
from freehold.model.outcome import OutcomeKind
from freehold.model.worker_info import Heartbeat
from freehold.store.sqlfiles import load_migrations
from tests.cli.shell import Shell, refusal, run

COMMANDS = [
    ("jobs",),
    ("queues",),
    ("enqueue", "t"),
    ("job", "show", "1"),
    ("job", "explain", "1"),
    ("job", "cancel", "1"),
    ("queues", "pause", "q"),
    ("queues", "resume", "q"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_schema_every_command_names_the_remedy(
    postgres_url: str, command: tuple[str, ...]
) -> None:
    assert "run `freehold migrate`" in refusal(run(*command, "--url", postgres_url), 3)


def test_the_remedy_names_the_program_that_was_called(
    postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`freehold migrate` alone would migrate another store than that of a Django project."""
    with pytest.raises(SystemExit):
        main.main(["jobs", "--url", postgres_url], prog_name="manage.py freehold")
    assert "run `manage.py freehold migrate`" in capsys.readouterr().err


def test_a_plan_changes_nothing_and_migrating_twice_is_harmless(postgres_url: str) -> None:
    at = ("--url", postgres_url)
    for _ in range(2):
        assert "would apply 0001 schema" in run("migrate", "--plan", *at).out
    assert "applied 0001 schema" in run("migrate", *at).out
    assert run("migrate", *at).out.endswith("is up to date\n")
    assert run("migrate", "--plan", *at).out.endswith("is up to date\n")
    assert run("jobs", *at).out == "no jobs\n"


def test_applied_and_planned_migrations_are_listed_as_json(postgres_url: str) -> None:
    at = ("--url", postgres_url, "--json")
    every = [version for version, _, _ in load_migrations("freehold.store.postgres")]
    plan = run("migrate", "--plan", *at).json
    assert (plan["applied"], [each["version"] for each in plan["migrations"]]) == (False, every)
    assert plan["migrations"][0]["name"] == "schema"
    done = run("migrate", *at).json
    assert (done["applied"], [each["version"] for each in done["migrations"]]) == (True, every)
    assert run("migrate", *at).json["migrations"] == []


def test_the_printed_sql_creates_the_whole_schema(postgres_url: str) -> None:
    at = ("--url", postgres_url, "--schema", "queue_two")
    sql = run("migrate", "--sql", *at).out
    assert run("migrate", "--plan", "--sql", *at).out == sql
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.encode())
    assert run("migrate", *at).out.endswith("is up to date\n")
    assert run("enqueue", "t", *at, "--json").json["created"] is True
    assert "run `freehold migrate`" in refusal(run("jobs", "--url", postgres_url), 3)


def test_a_schema_name_is_checked(postgres_url: str) -> None:
    result = run("migrate", "--url", postgres_url, "--schema", 'a"; drop schema public')
    assert "is not a usable name" in refusal(result, 2)


def test_the_embedded_store_needs_no_migration(sqlite_shell: Shell) -> None:
    assert sqlite_shell("migrate").out.endswith("is up to date\n")
    assert "create table job" in sqlite_shell("migrate", "--sql").out


def test_a_newer_store_is_refused_and_not_changed(sqlite_shell: Shell) -> None:
    sqlite_shell.store.sql("pragma user_version = 999")
    for command in (("migrate",), ("jobs",), ("doctor",)):
        assert "upgrade freehold here" in sqlite_shell.refused(*command, code=3)


def test_doctor_passes_the_embedded_store(sqlite_shell: Shell) -> None:
    result = sqlite_shell("doctor")
    assert result.code == 0
    assert "✓  writable" in result.out
    assert "MB free" in result.out
    assert "integrity" not in result.out  # it takes seconds where there are a million jobs
    document = sqlite_shell("doctor", "--deep", "--json").json
    assert document["good"] is True
    assert "integrity" in {each["name"] for each in document["diagnoses"]}


def diagnosis(shell: Shell, name: str) -> tuple[bool, str]:
    result = shell("doctor", "--json")
    document = json.loads(result.out)
    assert result.code == (0 if document["good"] else 1)
    (found,) = [each for each in document["diagnoses"] if each["name"] == name]
    return found["good"], found["detail"]


def test_doctor_finds_ready_jobs_without_a_worker(shell: Shell) -> None:
    assert diagnosis(shell, "workers")[0]
    shell.store.add(queue="mail")
    shell.store.add(queue="later", delay_seconds=60.0)
    good, detail = diagnosis(shell, "workers")
    assert (good, "no worker serves mail," in detail) == (False, True)
    fields: dict[str, Any] = {"host": "box", "pid": 1, "concurrency": 1, "tasks": (), "version": ""}
    for queue, is_served in (("other", False), ("mail", True)):
        shell.store.store.heartbeat(Heartbeat(owner=queue, queues=(queue,), **fields), 30.0)
        assert diagnosis(shell, "workers")[0] is is_served
    shell.store.add(queue="new")
    assert not diagnosis(shell, "workers")[0]
    shell.store.store.heartbeat(Heartbeat(owner="all", queues=("*",), **fields), 30.0)
    assert diagnosis(shell, "workers")[0]


def test_doctor_finds_blocked_lanes_and_parked_jobs(shell: Shell) -> None:
    assert diagnosis(shell, "lanes")[0]
    assert diagnosis(shell, "tasks")[0]
    shell.store.add(target="lane", max_attempts=1)
    shell.store.end(shell.store.claim_one(), OutcomeKind.FAIL, reason="no")
    good, detail = diagnosis(shell, "lanes")
    assert (good, detail.startswith("1 failed job blocks its lane: ")) == (False, True)
    shell.store.add(task="unknown")
    assert shell.store.claim(tasks=frozenset({"t"})) == []
    good, detail = diagnosis(shell, "tasks")
    assert (good, detail.startswith("1 job is parked, because")) == (False, True)


def test_doctor_names_pauses(shell: Shell) -> None:
    shell.store.add(queue="mail")
    shell("queues", "pause", "mail")
    assert diagnosis(shell, "pauses") == (True, "paused: mail")
    assert diagnosis(shell, "workers")[0]
    shell("queues", "pause", "*")
    assert diagnosis(shell, "pauses") == (True, "all queues are paused")


def test_doctor_finds_a_database_that_is_read_only_by_default(postgres_url: str) -> None:
    assert run("migrate", "--url", postgres_url).code == 0
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(
            f'alter database "{name}" set default_transaction_read_only = on'.encode()
        )
    result = run("doctor", "--url", postgres_url)
    assert result.code == 1
    assert "✗  writable" in result.out
    assert "default_transaction_read_only is on" in result.out


def test_doctor_fails_if_a_check_fails(postgres_url: str) -> None:
    result = run("doctor", "--url", postgres_url)
    assert result.code == 1
    assert "✗  schema" in result.out
    assert "✓  version" in result.out
    assert run("doctor", "--url", postgres_url, "--json").code == 1


def test_the_default_store_is_a_file_in_this_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("enqueue", "t").code == 0
    assert (tmp_path / "freehold.db").exists()
