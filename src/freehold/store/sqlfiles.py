"""Reads the SQL files: one statement each, named after its verb.

`{schema}`, stages such as `{ready}`, and `{name}` of a file `_name.sql` beside it are filled in.
Comments are removed, so that a colon in a comment is never taken for a parameter.

What a session must know of a statement beside its SQL stands in the file as well, on a line
`-- properties: can_conflict`, so that it is not lost when the statement is renamed. It is declared
in the store whose session reads it.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from importlib.resources import files

from freehold.store.stage_sql import STAGE_NAMES

_INCLUDE = re.compile(r"\{([a-z_]+)\}")
_COMMENT = re.compile(r"--[^\n]*")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
_PROPERTIES = re.compile(r"^-- properties:(.*)$", re.MULTILINE)


class Property(Enum):
    """What a session must know of a statement."""

    #: It only adds rows, which block no other transaction: PostgreSQL may begin with it before the
    #: rest of its group is sent.
    ADDS_ROWS = "adds_rows"
    #: A unique index can refuse it. In a caller's transaction it has a savepoint of its own.
    CAN_CONFLICT = "can_conflict"
    #: How long it takes depends on the rows that it finds: PostgreSQL's response has no time limit.
    TAKES_LONG = "takes_long"
    #: It makes no job ready and requests no stop: SQLite sends no notification of the change.
    NOT_NOTIFIED = "not_notified"
    #: One of its parts fills the table `candidate` of SQLite. If that finds no job, as most claims
    #: do, only the last part follows.
    FILLS_CANDIDATES = "fills_candidates"


def load_statements(package: str, values: dict[str, str]) -> dict[str, str]:
    """Name -> SQL of every statement in the package's folder `sql`."""
    texts = {name: _COMMENT.sub("", text).strip() for name, text in _files(package).items()}
    parts = values | {name[1:]: text for name, text in texts.items() if name.startswith("_")}

    def fill(text: str) -> str:
        return _INCLUDE.sub(lambda match: fill(parts[match[1]]), text)

    return {name: fill(text) for name, text in texts.items() if not name.startswith("_")}


def statements_with(wanted: Property, package: str) -> frozenset[str]:
    """The names of the statements that declare a property."""
    return frozenset(
        name for name, text in _files(package).items() if wanted in properties_of(name, text)
    )


def properties_of(name: str, text: str) -> set[Property]:
    """What a file declares. A property that does not exist is an error."""
    words = [word.strip() for line in _PROPERTIES.findall(text) for word in line.split(",")]
    if words and name.startswith("_"):
        raise ValueError(f"{name}.sql is a part of statements: declare {words} in their files")
    known = [each.value for each in Property]
    for word in words:
        if word not in known:
            raise ValueError(f"{name}.sql has the property {word!r}: it can be {', '.join(known)}")
    return {Property(word) for word in words}


@cache
def _files(package: str) -> dict[str, str]:
    return {
        entry.name.removesuffix(".sql"): entry.read_text()
        for entry in files(package).joinpath("sql").iterdir()
        if entry.name.endswith(".sql")
    }


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
