"""`--app module:attribute`: finding the app, and the errors if it is not found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from freehold import Freehold
from freehold.store.types import JobFilter
from tests.cli.shell import CommandResult, environment, refusal, run, spawn

SHOP = """
from freehold import Freehold
app = Freehold("sqlite:///own.db")

class Nested:
    inner = app

@app.task
def send(to: str) -> None: ...
"""
BROKEN = """
from freehold import Freehold

class Broken(Freehold):
    @property
    def _database(self):
        raise RuntimeError("boom\\nand more")

app = Broken("sqlite://:memory:")
"""


#: Runs the command for each app, one after another in one process, and prints the results.
SEVERAL = """
import json, sys
from click.testing import CliRunner
from freehold.cli import main

def run(where):
    ended = CliRunner().invoke(main, ["enqueue", "t", "--app", where], prog_name="freehold")
    return ended.exit_code, ended.stdout, ended.stderr

print(json.dumps({where: run(where) for where in sys.argv[1:]}))
"""
#: Apps that cannot be found, and what the error contains.
NOT_FOUND = {
    "nowhere:app": "there is no module nowhere here",
    "shop.nowhere:app": "there is no module shop.nowhere here",
    "shop:nothing": "shop has no nothing; did you mean shop:app?",
    "shop:send": "that is a Task, not a Freehold app; did you mean shop:app?",
    "empty:app": "empty has no app; it defines no app",
    "shop": "give module:attribute, such as shop.tasks:app",
    ":app": "give module:attribute",
    "shop:": "give module:attribute",
    ".shop:app": "cannot be imported",
    "needy:app": "needy needs the module no_such_library, which is not installed here",
    "typo:app": "typo cannot be imported: SyntaxError",
    "quits:app": "quits cannot be imported: SystemExit",
    "divides:app": "ZeroDivisionError: division by zero (divides.py:2; FREEHOLD_DEBUG=1",
}


def write_project(folder: Path) -> Path:
    (folder / "shop.py").write_text(SHOP, encoding="utf-8")
    (folder / "broken.py").write_text(BROKEN, encoding="utf-8")
    (folder / "needy.py").write_text("import no_such_library", encoding="utf-8")
    (folder / "typo.py").write_text("def (:", encoding="utf-8")
    (folder / "quits.py").write_text("raise SystemExit(0)", encoding="utf-8")
    (folder / "divides.py").write_text("\nONE = 1 / 0\n", encoding="utf-8")
    (folder / "empty.py").write_text("", encoding="utf-8")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path)


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CommandResult]:
    """What the command printed for each app that cannot be found."""
    folder = write_project(tmp_path_factory.mktemp("project"))
    printed = subprocess.run(
        [sys.executable, "-c", SEVERAL, *NOT_FOUND],
        cwd=folder,
        env=environment(),
        capture_output=True,
        check=True,
        timeout=120,
    ).stdout
    assert list(folder.glob("*.db")) == []
    return {where: CommandResult(*ended) for where, ended in json.loads(printed).items()}


def tasks_in(file: Path) -> list[str]:
    app = Freehold(str(file))
    try:
        return [job.task for job in app.operator.jobs(JobFilter()).jobs]
    finally:
        app.close()


def test_the_apps_own_store_is_used(project: Path) -> None:
    result = spawn("enqueue", "shop.send", "to=ann", "--app", "shop:app", cwd=project)
    assert result.out == "job 1 of shop.send is in queue default\n"
    assert tasks_in(project / "own.db") == ["shop.send"]
    listed = spawn("jobs", cwd=project, env={"FREEHOLD_APP": "shop:Nested.inner"})
    assert "shop.send" in listed.out


def test_a_url_or_the_environment_overrides_the_apps_store(project: Path) -> None:
    command = ("enqueue", "shop.send", "to=ann", "--app", "shop:app")
    spawn(*command, "--url", "flag.db", cwd=project)
    spawn(*command, cwd=project, env={"FREEHOLD_URL": "environment.db"})
    assert tasks_in(project / "flag.db") == ["shop.send"]
    assert tasks_in(project / "environment.db") == ["shop.send"]
    assert not (project / "own.db").exists()


def test_database_url_does_not_override_the_apps_store(project: Path) -> None:
    command = ("enqueue", "shop.send", "to=ann", "--app", "shop:app")
    spawn(*command, cwd=project, env={"DATABASE_URL": "other.db"})
    assert tasks_in(project / "own.db") == ["shop.send"]


@pytest.mark.parametrize("where", NOT_FOUND)
def test_an_app_that_cannot_be_found_is_bad_input(
    refused: dict[str, CommandResult], where: str
) -> None:
    line = refusal(refused[where], 2)
    assert line.startswith(f"--app {where}: ")
    assert NOT_FOUND[where] in line


def test_an_object_that_is_not_an_app_is_bad_input() -> None:
    line = refusal(run("jobs", "--app", "tests.cli.shop:not_an_app"), 2)
    assert "that is a int, not a Freehold app; did you mean tests.cli.shop:app?" in line


def test_an_unexpected_error_is_reported_as_a_bug(project: Path) -> None:
    line = refusal(spawn("doctor", "--app", "broken:app", cwd=project), 70)
    assert line.startswith("this is a bug in freehold: RuntimeError: boom and more")
    result = spawn("doctor", "--app", "broken:app", cwd=project, env={"FREEHOLD_DEBUG": "1"})
    assert result.code == 70
    assert 'raise RuntimeError("boom' in result.err


@pytest.mark.parametrize("args", [(), ("job",), ("tenants", "move")])
def test_an_incomplete_command_shows_help_or_what_is_missing(args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.code == 2
    assert result.err.startswith(("Usage: ", "freehold: Missing"))
    if "Usage" in result.err:
        assert len(result.err.splitlines()) > 10
