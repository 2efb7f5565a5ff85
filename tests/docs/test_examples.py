"""Every example of the README and the documentation is executed."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.curl import curl_in
from tests.docs.pages import ROOT, Block, Command, blocks, commands, write_files

LIMIT_SECONDS = 120


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """The environment of a new user, without the settings of this test run."""
    cleaned = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FREEHOLD_", "DATABASE_URL"))
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**cleaned, "PATH": path, "COLUMNS": "100", **more}


def run(
    folder: Path, *command: str, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(more or {}),
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_the_example_runs(block: Block, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    write_files(block.page, tmp_path)
    (tmp_path / "example.py").write_text(block.text, encoding="utf-8")
    more = {}
    if block.needs_postgres:
        more["DATABASE_URL"] = request.getfixturevalue("postgres_url")
    ended = run(tmp_path, sys.executable, block.file_name or "example.py", more=more)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("page", ["README.md", "docs/five-minutes.md", "docs/changing-tasks.md"])
def test_the_page_can_be_typed_into_a_shell(page: str, tmp_path: Path) -> None:
    """All commands run in one folder, from top to bottom, and print the output shown."""
    write_files(page, tmp_path)
    typed = list(commands(page))
    assert typed
    for command in typed:
        _type(tmp_path, command)


@pytest.mark.requirement("S4.8")
def test_the_http_page_can_be_typed_into_a_shell(tmp_path: Path) -> None:
    """The commands run against a server in the same folder; the last section needs tokens."""
    write_files("docs/http.md", tmp_path)
    curl = curl_in(tmp_path)
    typed = list(commands("docs/http.md"))
    open_ones = [command for command in typed if "_TOKEN" not in command.text]
    first_guarded = next(n for n, c in enumerate(typed) if "%{http_code}" in c.text)
    assert len(open_ones) > first_guarded > 10
    token = {"VIEWER_TOKEN": "a-token-for-this-test-only"}
    tokens = {**token, "FREEHOLD_HTTP_TOKENS": "viewer:env:VIEWER_TOKEN"}
    local = {"FREEHOLD_HTTP_TOKENS": "local"}
    for part, more in ((typed[:first_guarded], local), (typed[first_guarded:], tokens)):
        with _served(tmp_path, more) as address:
            for command in part:
                _type(tmp_path, command, {"API": address, **more, **curl})


@contextmanager
def _served(folder: Path, more: Mapping[str, str]) -> Iterator[str]:
    """Serves with uvicorn, as the page does, but on any free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "asgi:application", "--fd", str(listener.fileno())],
            cwd=folder,
            env=environment(more),
            pass_fds=[listener.fileno()],
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        try:
            # The port is open from the beginning: early requests wait.
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.terminate()
            server.wait(LIMIT_SECONDS)


def test_every_script_named_in_the_documentation_exists() -> None:
    docs = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")]
    found = set()
    for page in ("README.md", "CONTRIBUTING.md", *docs):
        found |= set(re.findall(r"`scripts/[a-z_]+(?:\.py)?", (ROOT / page).read_text("utf-8")))
    assert len(found) > 10
    assert [name for name in found if not (ROOT / name[1:]).exists()] == []


def _type(folder: Path, command: Command, more: Mapping[str, str] | None = None) -> None:
    """Runs the command; each line of output that the page shows must be printed."""
    ended = run(folder, "sh", "-c", command.text, more=more)
    assert ended.returncode == 0, f"$ {command.text}\n{ended.stderr}"
    printed = [_comparable(line) for line in ended.stdout.splitlines()]
    for line in command.shown:
        assert _comparable(line) in printed, f"$ {command.text}\n{ended.stdout}"


def _comparable(line: str) -> str:
    return " ".join(line.split())
