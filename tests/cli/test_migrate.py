"""`freehold migrate` and `freehold doctor`."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

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
    assert "✓  integrity" in result.out
    document = sqlite_shell("doctor", "--json").json
    assert document["good"] is True
    assert {each["name"] for each in document["diagnoses"]} == {"store", "schema", "integrity"}


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
