"""Writes one row of the tables in docs/versions.md: what was tested, when, with which result.

python -m scripts.site.matrix PostgreSQL 14 14.23 "tests/store_postgres" "812 passed"
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime

from scripts.site.paths import DOCS

PAGE = DOCS / "versions.md"


def write_row(kind: str, version: str, exact: str, tests: str, result: str) -> None:
    """Replaces the row of this version, or adds it, in the table between the marks of its kind."""
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    row = f"| {kind} {version} | {exact} | `{tests}` | {result} | {today} |"
    PAGE.write_text(with_row(PAGE.read_text("utf-8"), kind, version, row), encoding="utf-8")


def with_row(text: str, kind: str, version: str, row: str) -> str:
    mark = kind.lower()
    found = re.search(rf"<!-- {mark} -->\n(.*?)<!-- /{mark} -->", text, re.DOTALL)
    assert found is not None, f"docs/versions.md has no table {mark}"
    head, rule, *rows = found[1].strip().split("\n")
    others = [each for each in rows if not each.startswith(f"| {kind} {version} |")]
    table = "\n".join([head, rule, *sorted([*others, row], key=_by_version), ""])
    return text[: found.start(1)] + table + text[found.end(1) :]


def _by_version(row: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", row.split("|")[1])]


if __name__ == "__main__":
    write_row(*sys.argv[1:])
