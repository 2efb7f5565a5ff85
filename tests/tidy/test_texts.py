"""What no file of the repository may contain, and what the lock files must."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from scripts.site.pages import generated
from tests.tidy.sources import ROOT, text_files

#: This file names what it forbids.
_HERE = "tests/tidy/test_texts.py"
_MACHINE = re.compile(r"/[w]ork/|/home/[a-z]|/[r]oot/|/Users/")
_REGISTRY = re.compile(r"\bpypi\.|pythonhosted|(?<!no-emit-)index-url")
_NOT_RUN = re.compile(r"\b(skip|skipif|xfail|importorskip)\(|mark\.(skip|xfail)")
_MOCK = re.compile(r"unittest\.mock|MagicMock|\bmocker\b")
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+).*\\$")


def test_no_file_names_a_path_of_a_machine() -> None:
    assert _found(_MACHINE) == []


def test_no_file_names_a_package_registry() -> None:
    """The source of packages is a setting of the machine that installs them."""
    assert _found(_REGISTRY) == []


def test_every_test_is_run() -> None:
    """Except the model where Spin is not installed, which the summary of the run reports."""
    assert [path for path in _found(_NOT_RUN) if path.startswith("tests/")] == []


def test_nothing_is_mocked() -> None:
    """The real store in memory is as fast as a mock, and cannot be wrong about itself."""
    assert [path for path in _found(_MOCK) if path.startswith("tests/")] == []


@pytest.mark.parametrize("name", ["dev", "demo", "run", "build", "docs", "release"])
def test_a_lock_pins_every_package_by_hash(name: str) -> None:
    assert _pins(name)


def test_the_demo_gets_what_the_package_needs_in_the_versions_of_the_tests() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {re.split(r"[^a-z-]", each)[0] for each in project["dependencies"]}
    demo, dev = _pins("demo"), _pins("dev")
    assert needed <= demo.keys()
    assert demo.items() <= dev.items()


def test_the_image_gets_the_versions_of_the_tests() -> None:
    dev, run, build = _pins("dev"), _pins("run"), _pins("build")
    assert {"psycopg", "starlette", "uvicorn"} <= run.keys()
    assert "hatchling" in build
    assert (run | build).items() <= dev.items()


def _pins(name: str) -> dict[str, str]:
    """Package -> version."""
    lines = (ROOT / "requirements" / f"{name}.lock").read_text("utf-8").splitlines()
    found = {}
    for index, line in enumerate(lines):
        if line and not line.startswith((" ", "#")):
            pin = _PIN.match(line)
            assert pin, line
            assert lines[index + 1].strip().startswith("--hash=sha256:"), line
            found[pin[1]] = pin[2]
    return found


def test_every_decision_has_its_parts() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [int(page.name.partition("-")[0]) for page in pages]
    assert numbers == list(range(1, len(pages) + 1))
    for page in pages:
        text = page.read_text("utf-8")
        assert re.match(r"# .+\n\nStatus: (accepted|(amended|superseded) by \d)", text), page.name
        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert headings == ["Context", "Choice", "Measured", "Given up"], page.name


def test_links_between_pages_lead_somewhere() -> None:
    pages = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    missing = [
        f"{page.relative_to(ROOT)} -> {target}" for page in pages for target in _broken_links(page)
    ]
    assert missing == []


def _broken_links(page: Path) -> list[str]:
    """Pages that `scripts/docs` makes from the code do not exist before."""
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8"))
    made = {(ROOT / "docs" / path).resolve() for path in generated()}
    paths = {t: (page.parent / t).resolve() for t in targets if "://" not in t}
    return [t for t, path in paths.items() if not path.exists() and path not in made]


def _found(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{number}"
        for path, text in text_files()
        if path != _HERE
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
