"""Reads the SQL files: one statement each, named after its verb.

`{schema}`, stages such as `{ready}`, and `{name}` of a file `_name.sql` beside it are filled in.
Comments are removed, so that a colon in a comment is never taken for a parameter.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from freehold.store.stage_sql import STAGE_NAMES

_INCLUDE = re.compile(r"\{([a-z_]+)\}")
_COMMENT = re.compile(r"--[^\n]*")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


def load_statements(package: str, values: dict[str, str]) -> dict[str, str]:
    """Name -> SQL of every statement in the package's folder `sql`."""
    texts = {
        entry.name.removesuffix(".sql"): _COMMENT.sub("", entry.read_text()).strip()
        for entry in files(package).joinpath("sql").iterdir()
        if entry.name.endswith(".sql")
    }
    parts = values | {name[1:]: text for name, text in texts.items() if name.startswith("_")}

    def fill(text: str) -> str:
        return _INCLUDE.sub(lambda match: fill(parts[match[1]]), text)

    return {name: fill(text) for name, text in texts.items() if not name.startswith("_")}


@cache
def load_migrations(package: str) -> tuple[tuple[int, str, str], ...]:
    """(version, name, SQL) of every migration, in order. Read once: a process can open hundreds of
    tenants, possibly at a time when it can open no more files."""
    found = []
    for entry in files(package).joinpath("migrations").iterdir():
        if entry.name.endswith(".sql"):
            version, name = entry.name.removesuffix(".sql").split("_", 1)
            found.append((int(version), name, with_stages(entry.read_text())))
    return tuple(sorted(found))


def with_stages(text: str) -> str:
    """`{ready}` and the other stages; `{schema}` is filled in by its database."""
    return _INCLUDE.sub(lambda match: STAGE_NAMES.get(match[1], match[0]), text)


def numbered(text: str) -> tuple[str, tuple[str, ...]]:
    """`:name` -> `$1`, with the names in the order of their numbers."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}"

    return _PARAMETER.sub(number, text), tuple(names)


def script(text: str) -> list[str]:
    """The statements of a file that has several, in order."""
    return [part.strip() for part in re.split(r";\s*(?:\n|$)", text) if part.strip()]
