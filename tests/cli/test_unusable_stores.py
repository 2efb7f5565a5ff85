"""Stores that cannot be used: one clear line, no secret in it, nothing changed."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.cli.shell import CommandResult, Shell, environment, refusal, run, spawn

COMMANDS = [
    ("jobs",),
    ("jobs", "--json"),
    ("queues",),
    ("enqueue", "t"),
    ("job", "show", "1"),
    ("job", "explain", "1"),
    ("job", "cancel", "1"),
    ("queues", "pause", "q"),
    ("migrate",),
    ("migrate", "--plan"),
    ("doctor",),
    ("doctor", "--json"),
]
# Takes away root's right to ignore the modes of files.
WITHOUT_OVERRIDE = """
import ctypes, os, sys
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
if os.geteuid() == 0 and ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) != 0:
    sys.exit("cannot drop CAP_DAC_OVERRIDE")
os.execv(sys.executable, [sys.executable, "-m", "freehold", *sys.argv[1:]])
"""


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Bound, so that no other process listens there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_database_that_is_down(closed_port: int, command: tuple[str, ...]) -> None:
    url = f"postgresql://ann:swordfish@127.0.0.1:{closed_port}/shop"
    result = run(*command, "--url", url)
    line = refusal(result, 3)
    assert f"cannot connect to postgresql://ann@127.0.0.1:{closed_port}/shop" in line
    assert "is the server running?" in line
    assert "swordfish" not in result.err


def test_a_traceback_has_no_password(closed_port: int, tmp_path: Path) -> None:
    url = f"postgresql://ann:swordfish@127.0.0.1:{closed_port}/shop"
    result = spawn("jobs", cwd=tmp_path, env={"FREEHOLD_URL": url, "FREEHOLD_DEBUG": "1"})
    assert result.code == 3
    assert "Traceback" in result.err
    assert "swordfish" not in result.err + result.out


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mysql://ann:xyzzy@host/db", "'mysql://ann@host/db' is not a store"),
        ("http://example.org", "'http://example.org' is not a store: give postgresql://"),
        ("postgresql://[bad", "'postgresql://…' is not a PostgreSQL URL"),
        ("postgresql://ann:xyzzy plugh@h/db", "is not a PostgreSQL URL"),
        ("postgresql://ann:xyzzy%zzplugh@h/db", "is not a PostgreSQL URL"),
        ("postgresql://ann:xyzzy@plugh@h/db", "more than one '@'"),
        ("postgresql://ann:xyzzy/plugh@[h/db", "its port is no number"),
        ("postgresql://h/db?xyzzy=1", "is not a PostgreSQL URL"),
        ("host=h password=xyzzy plugh=1", "'postgresql://h' is not a PostgreSQL URL"),
        ("host=h password='xyzzy plugh", "'postgresql://…' is not a PostgreSQL URL"),
        ("Server=h;Database=d;Pwd=xyzzy;", "'postgresql://…' is not a PostgreSQL URL"),
        ("sqlite:///", "names no file"),
        ("sqlite:jobs.db", "is not a store"),
        ("", "'' is not a store"),
    ],
)
def test_an_invalid_url_is_bad_input(url: str, expected: str) -> None:
    line = refusal(run("jobs", "--url", url), 2)
    assert expected in line
    for secret in ("xyzzy", "plugh"):
        assert secret not in line


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+asyncpg://ann:xyzzy@127.0.0.1:{port}/shop",
        "postgresql+psycopg://ann:xyzzy@127.0.0.1:{port}/shop",
        "postgres://ann:xyzzy@127.0.0.1:{port}/shop",
        "host=127.0.0.1 port={port} user=ann password=xyzzy dbname=shop",
        r"dbname = shop  password='xyz\'zy @@ a://b' host='127.0.0.1' user=ann port={port}",
    ],
)
def test_the_usual_notations_of_a_postgresql_url(
    closed_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """None of them becomes a file, whose name would show the password."""
    monkeypatch.chdir(tmp_path)
    named = {"DATABASE_URL": url.format(port=closed_port)}
    shown = f"127.0.0.1:{closed_port}/shop"
    for command in (("migrate",), ("jobs",), ("enqueue", "t")):
        line = refusal(run(*command, env=named), 3)
        assert "cannot connect to postgres" in line
        assert f"://ann@{shown}" in line
        assert "zy" not in line
    result = run("config", env=named)
    assert f"ann@{shown}" in result.out
    assert "zy" not in result.out
    assert list(tmp_path.iterdir()) == []


def test_libpqs_notation_opens_the_database(postgres_url: str) -> None:
    words = " ".join(f"{name}='{value}'" for name, value in conninfo_to_dict(postgres_url).items())
    driver = postgres_url.replace("postgresql://", "postgresql+asyncpg://")
    assert run("migrate", "--url", words).code == 0
    assert run("enqueue", "t", "--url", driver).code == 0
    assert run("jobs", "--json", "--url", words).json["jobs"][0]["task"] == "t"


def test_a_file_that_is_not_a_database(tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear Ann, " * 1000, encoding="utf-8")
    for command in COMMANDS:
        line = refusal(run(*command, "--url", str(letter)), 3)
        assert f"{letter} is not an SQLite database: choose another file" in line
    assert letter.read_text(encoding="utf-8") == "Dear Ann, " * 1000


def test_a_folder_instead_of_a_file(tmp_path: Path) -> None:
    assert "cannot be opened" in refusal(run("jobs", "--url", str(tmp_path)), 3)


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    line = refusal(run("jobs", "--url", str(tmp_path / "nowhere" / "jobs.db")), 3)
    assert str(tmp_path / "nowhere" / "jobs.db") in line


def test_a_damaged_database(sqlite_shell: Shell) -> None:
    sqlite_shell.store.add()
    sqlite_shell.store.database.close()
    path = Path(sqlite_shell.url)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    assert "jobs.db" in refusal(run("jobs", "--url", sqlite_shell.url), 3)
    result = run("doctor", "--url", sqlite_shell.url)
    assert result.code in (1, 3)
    assert "Traceback" not in result.err


@pytest.mark.parametrize("command", [("enqueue", "t"), ("job", "cancel", "1")])
def test_a_file_that_must_not_be_written(sqlite_shell: Shell, command: tuple[str, ...]) -> None:
    sqlite_shell.store.add()
    before = sqlite_shell.store.everything()
    sqlite_shell.store.database.close()
    path = Path(sqlite_shell.url)
    for file in path.parent.iterdir():
        file.chmod(stat.S_IRUSR)
    path.parent.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        line = refusal(_without_override(*command, "--url", sqlite_shell.url), 3)
    finally:
        path.parent.chmod(stat.S_IRWXU)
        for file in path.parent.iterdir():
            file.chmod(stat.S_IRUSR | stat.S_IWUSR)
    assert f"{path} cannot be written" in line
    assert "check the owner and mode of the file and its folder" in line
    assert sqlite_shell.store.everything() == before


def _without_override(*args: str) -> CommandResult:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_OVERRIDE, *args],
        env=environment({"HOME": os.devnull}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    "command",
    [
        *(expected for expected in COMMANDS if expected not in {("enqueue", "t"), ("migrate",)}),
        ("migrate", "--sql"),
        ("workers",),
        ("lanes",),
        ("limits",),
        ("top", "--once"),
        ("tenants",),
        ("tenants", "migrate"),
        ("jobs", "--tenant", "acme"),
    ],
)
def test_a_mistyped_name_does_not_create_a_store(tmp_path: Path, command: tuple[str, ...]) -> None:
    line = refusal(run(*command, "--url", str(tmp_path / "typo.db")), 3)
    assert f"there is no store {tmp_path / 'typo.db'}" in line
    assert "`freehold migrate`" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [("enqueue", "t"), ("migrate",), ("tenants", "create", "acme")])
def test_commands_that_store_something_create_the_store(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    at = ("--url", str(tmp_path / "new.db"))
    assert run(*command, *at).code == 0
    assert run("jobs", *at).code == 0
