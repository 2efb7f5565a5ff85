"""`--app module:attribute`: finding the app, and saying why it was not found."""

from __future__ import annotations

from pathlib import Path

import pytest

from freehold import Freehold
from freehold.store.types import JobFilter
from tests.cli.shell import refusal, run, spawn

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
    def database(self):
        raise RuntimeError("boom\\nand more")

app = Broken("sqlite://:memory:")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    (tmp_path / "broken.py").write_text(BROKEN, encoding="utf-8")
    (tmp_path / "needy.py").write_text("import no_such_library", encoding="utf-8")
    (tmp_path / "typo.py").write_text("def (:", encoding="utf-8")
    (tmp_path / "quits.py").write_text("raise SystemExit(0)", encoding="utf-8")
    (tmp_path / "divides.py").write_text("\nONE = 1 / 0\n", encoding="utf-8")
    (tmp_path / "empty.py").write_text("", encoding="utf-8")
    return tmp_path


def tasks_in(file: Path) -> list[str]:
    app = Freehold(str(file))
    try:
        return [job.task for job in app.operate.jobs(JobFilter()).jobs]
    finally:
        app.close()


def test_the_apps_own_store_is_used(project: Path) -> None:
    said = spawn("enqueue", "shop.send", "to=ann", "--app", "shop:app", cwd=project)
    assert said.out == "job 1 of shop.send is in queue default\n"
    assert tasks_in(project / "own.db") == ["shop.send"]
    listed = spawn("jobs", cwd=project, env={"FREEHOLD_APP": "shop:Nested.inner"})
    assert "shop.send" in listed.out


def test_a_url_or_the_environment_says_otherwise(project: Path) -> None:
    command = ("enqueue", "shop.send", "to=ann", "--app", "shop:app")
    spawn(*command, "--url", "flag.db", cwd=project)
    spawn(*command, cwd=project, env={"FREEHOLD_URL": "environment.db"})
    assert tasks_in(project / "flag.db") == ["shop.send"]
    assert tasks_in(project / "environment.db") == ["shop.send"]
    assert not (project / "own.db").exists()


def test_the_database_of_other_programs_does_not_move_the_app(project: Path) -> None:
    command = ("enqueue", "shop.send", "to=ann", "--app", "shop:app")
    spawn(*command, cwd=project, env={"DATABASE_URL": "other.db"})
    assert tasks_in(project / "own.db") == ["shop.send"]


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("nowhere:app", "there is no module nowhere here"),
        ("shop.nowhere:app", "there is no module shop.nowhere here"),
        ("shop:nothing", "shop has no nothing; did you mean shop:app?"),
        ("shop:send", "that is a Task, not a Freehold app; did you mean shop:app?"),
        ("empty:app", "empty has no app; it defines no app"),
        ("shop", "give module:attribute, such as shop.tasks:app"),
        (":app", "give module:attribute"),
        ("shop:", "give module:attribute"),
        (".shop:app", "cannot be imported"),
        ("needy:app", "needy needs the module no_such_library, which is not installed here"),
        ("typo:app", "typo cannot be imported: SyntaxError"),
        ("quits:app", "quits cannot be imported: SystemExit"),
        ("divides:app", "ZeroDivisionError: division by zero (divides.py:2; FREEHOLD_DEBUG=1"),
    ],
)
def test_an_app_that_cannot_be_found(project: Path, where: str, words: str) -> None:
    said = spawn("enqueue", "t", "--app", where, cwd=project)
    line = refusal(said, 2)
    assert line.startswith(f"--app {where}: ")
    assert words in line
    assert list(project.glob("*.db")) == []


def test_an_object_that_is_no_app() -> None:
    line = refusal(run("jobs", "--app", "tests.cli.shop:not_an_app"), 2)
    assert "that is a int, not a Freehold app; did you mean tests.cli.shop:app?" in line


def test_a_bug_is_called_one(project: Path) -> None:
    line = refusal(spawn("doctor", "--app", "broken:app", cwd=project), 70)
    assert line.startswith("this is a bug in freehold: RuntimeError: boom and more")
    said = spawn("doctor", "--app", "broken:app", cwd=project, env={"FREEHOLD_DEBUG": "1"})
    assert said.code == 70
    assert 'raise RuntimeError("boom' in said.err


@pytest.mark.parametrize("words", [(), ("job",), ("tenants", "move")])
def test_a_command_without_a_word_more_shows_help_in_lines(words: tuple[str, ...]) -> None:
    said = run(*words)
    assert said.code == 2
    assert said.err.startswith(("Usage: ", "freehold: Missing"))
    if "Usage" in said.err:
        assert len(said.err.splitlines()) > 10
