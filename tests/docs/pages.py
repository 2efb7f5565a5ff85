"""The examples in the documentation, as a reader would take them.

A block whose first line is a comment with a file's name (`# tasks.py`) is that file, and every
other block of its page can import it. A `console` block is typed into a shell: lines that begin
with `$ ` are commands, the others what they print.
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


#: Its blocks are one test file, which pytest itself runs: see tests/testing/test_page.py.
AS_A_WHOLE = ROOT / "docs" / "testing.md"


def pages() -> list[Path]:
    docs = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(page for page in docs if page != AS_A_WHOLE)]


def blocks(language: str, page: Path | None = None) -> list[Block]:
    return [
        Block(path.relative_to(ROOT).as_posix(), number, text)
        for path in ([page] if page else pages())
        for number, (tongue, text) in enumerate(_BLOCK.findall(path.read_text("utf-8")), 1)
        if tongue == language
    ]


def write_files(page: str, folder: Path) -> None:
    """The files that a page shows, where its reader would have put them."""
    for block in blocks("python", ROOT / page):
        if block.file_name is not None:
            (folder / block.file_name).write_text(block.text, encoding="utf-8")


def commands(page: str) -> Iterator[Command]:
    for block in blocks("console", ROOT / page):
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            text, *shown = part.rstrip("\n").split("\n")
            yield Command(text, tuple(shown))
