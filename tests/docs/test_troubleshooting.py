"""The messages that the page on troubleshooting explains are those that the program prints."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.docs.pages import ROOT

_PAGE = ROOT / "docs" / "troubleshooting.md"
#: Of PostgreSQL and PgBouncer.
_OF_OTHERS = {
    "password authentication failed",
    "SASL authentication failed",
    "no such database",
}


def _source() -> str:
    """All modules, with strings in one piece that stand on several lines."""
    files = sorted((ROOT / "src" / "freehold").rglob("*.py"))
    text = "\n".join(path.read_text("utf-8") for path in files)
    return re.sub(r'"\s*\n\s*f?"', "", text)


def _messages() -> list[str]:
    section = _PAGE.read_text("utf-8").partition("## Messages\n")[2].partition("\n## ")[0]
    cells = [row.split("|")[1] for row in section.splitlines() if row.startswith("| ")]
    found = (re.findall("`([^`]+)`", cell) for cell in cells)
    return [message for cell in found for message in cell if message not in _OF_OTHERS]


def _pieces(message: str) -> Iterator[str]:
    """What stands between the parts that differ each time."""
    for piece in re.split(r"…|\b\d+\b|\bID\b", message):
        if len(piece.strip(" :,()s")) > 3:
            yield piece.strip(" :,()")


def test_each_message_is_printed_by_the_program() -> None:
    messages = _messages()
    assert len(messages) > 15
    source = _source()
    assert [m for m in messages if any(piece not in source for piece in _pieces(m))] == []
