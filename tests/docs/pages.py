"""The examples in the documentation.

A block that begins with a comment with a file's name (`# tasks.py`) is that file, and every other
block of its page can import it. In a `console` block, lines that begin with `$ ` are commands, and
the others are their output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE_NAME = re.compile(r"# (\w+\.py)\n")


@dataclass(frozen=True)
class Block:
    page: str
    number: int
    text: str

    @property
    def file_name(self) -> str | None:
        found = _FILE_NAME.match(self.text)
        return found[1] if found else None

    @property
    def needs_postgres(self) -> bool:
        return 'os.environ["DATABASE_URL"]' in self.text

    def __str__(self) -> str:
        return f"{self.page}-{self.number}"


@dataclass(frozen=True)
class Command:
    text: str
    shown: tuple[str, ...]


#: Its blocks together are one test file, which pytest runs: see tests/testing/test_page.py.
TESTING_PAGE = ROOT / "docs" / "testing.md"


def pages() -> list[Path]:
    docs = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(page for page in docs if page != TESTING_PAGE)]


def blocks(language: str, page: Path | None = None) -> list[Block]:
    return [
        Block(path.relative_to(ROOT).as_posix(), number, text)
        for path in ([page] if page else pages())
        for number, (found, text) in enumerate(_BLOCK.findall(path.read_text("utf-8")), 1)
        if found == language
    ]


def write_files(page: str, folder: Path) -> None:
    """Writes the files that a page shows."""
    for block in blocks("python", ROOT / page):
        if block.file_name is not None:
            (folder / block.file_name).write_text(block.text, encoding="utf-8")


def commands(page: str) -> Iterator[Command]:
    for block in blocks("console", ROOT / page):
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            text, *shown = part.rstrip("\n").split("\n")
            yield Command(text, tuple(shown))
