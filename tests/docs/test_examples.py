"""Every example of the README and the documentation is executed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks, commands, write_files

LIMIT_SECONDS = 60


def run(folder: Path, *command: str, url: str | None = None) -> subprocess.CompletedProcess[str]:
    """As a reader has it: none of the settings that this run may have."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LEASEHOLD_", "DATABASE_URL"))
    }
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment["COLUMNS"] = "100"
    if url is not None:
        environment["DATABASE_URL"] = url
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_the_example_runs(block: Block, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    write_files(block.page, tmp_path)
    (tmp_path / "example.py").write_text(block.text, encoding="utf-8")
    url = request.getfixturevalue("postgres_url") if block.needs_postgres else None
    ended = run(tmp_path, sys.executable, block.file_name or "example.py", url=url)
    assert ended.returncode == 0, ended.stderr


def test_the_readme_can_be_typed_into_a_shell(tmp_path: Path) -> None:
    """In one folder, from top to bottom; what is shown of the output is what comes."""
    write_files("README.md", tmp_path)
    typed = list(commands("README.md"))
    assert typed
    for command in typed:
        ended = run(tmp_path, "sh", "-c", command.text)
        assert ended.returncode == 0, f"$ {command.text}\n{ended.stderr}"
        printed = [_comparable(line) for line in ended.stdout.splitlines()]
        for line in command.shown:
            assert _comparable(line) in printed, f"$ {command.text}\n{ended.stdout}"


def test_every_script_that_is_named_exists() -> None:
    for page in ("README.md", "CONTRIBUTING.md"):
        named = set(re.findall(r"\bscripts/[a-z_]+(?:\.py)?", (ROOT / page).read_text("utf-8")))
        assert named
        assert [name for name in named if not (ROOT / name).is_file()] == []


def _comparable(line: str) -> str:
    return " ".join(line.split())
