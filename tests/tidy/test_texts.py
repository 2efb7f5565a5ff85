"""What no file of the repository may contain, and what the lock file must."""

from __future__ import annotations

import re
from pathlib import Path

from tests.tidy.sources import ROOT, text_files

#: This file names what it forbids.
_HERE = "tests/tidy/test_texts.py"
_MACHINE = re.compile(r"/[w]ork/|/home/[a-z]|/[r]oot/|/Users/")
_REGISTRY = re.compile(r"\bpypi\.|pythonhosted|(?<!no-emit-)index-url")
_NOT_RUN = re.compile(r"\b(skip|skipif|xfail|importorskip)\(|mark\.(skip|xfail)")
_MOCK = re.compile(r"unittest\.mock|MagicMock|\bmocker\b")
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==\S+.*\\$")


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    assert _places(_MACHINE) == []


def test_no_file_names_a_package_registry() -> None:
    """Where packages come from is the business of whoever installs them."""
    assert _places(_REGISTRY) == []


def test_every_test_is_run() -> None:
    """But the model, where its checker is not installed: it says so."""
    found = [place.partition(":")[0] for place in _places(_NOT_RUN) if place.startswith("tests/")]
    assert found == ["tests/models/test_lease_model.py"]


def test_nothing_is_mocked() -> None:
    """The real store in memory is as fast as a mock, and cannot be wrong about itself."""
    assert [place for place in _places(_MOCK) if place.startswith("tests/")] == []


def test_the_lock_pins_every_package_by_hash() -> None:
    lines = (ROOT / "requirements" / "dev.lock").read_text("utf-8").splitlines()
    names = [i for i, line in enumerate(lines) if line and not line.startswith((" ", "#"))]
    assert names
    for index in names:
        assert _PIN.match(lines[index]), lines[index]
        assert lines[index + 1].strip().startswith("--hash=sha256:"), lines[index]


def test_every_decision_has_its_parts() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [int(page.name.partition("-")[0]) for page in pages]
    assert numbers == list(range(1, len(pages) + 1))
    for page in pages:
        headings = re.findall(r"^## (.+)$", page.read_text("utf-8"), re.MULTILINE)
        assert headings == ["Context", "Choice", "Measured", "Given up"], page.name


def test_links_between_pages_lead_somewhere() -> None:
    pages = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    missing = [
        f"{page.relative_to(ROOT)} -> {target}" for page in pages for target in _broken_links(page)
    ]
    assert missing == []


def _broken_links(page: Path) -> list[str]:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8"))
    return [t for t in targets if "://" not in t and not (page.parent / t).exists()]


def _places(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{place}:{number}"
        for place, text in text_files()
        if place != _HERE
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
