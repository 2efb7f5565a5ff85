"""Which tests prove which requirement; run as `python -m tests.requirements_table`."""

from __future__ import annotations

import contextlib
import io
import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import click
import pytest

STORES = ("postgres", "sqlite")
NAMES_SHOWN = 3


@dataclass
class Proof:
    """What stands behind one requirement. A parametrised test is one test."""

    title: str
    tests: set[str] = field(default_factory=set)
    stores: set[str] = field(default_factory=set)


@cache
def titles() -> dict[str, str]:
    path = Path(__file__).with_name("requirements.toml")
    found: dict[str, str] = tomllib.loads(path.read_text(encoding="utf-8"))["requirements"]
    return found


def requirements_of(item: pytest.Item) -> list[str]:
    """The ids that a test names; an id that does not exist is an error of collection."""
    ids = [str(name) for mark in item.iter_markers("requirement") for name in mark.args]
    unknown = [name for name in ids if name not in titles()]
    if unknown:
        raise pytest.Collector.CollectError(
            f"{item.nodeid} names {', '.join(unknown)}, which tests/requirements.toml does not have"
        )
    return ids


def stores_of(item: pytest.Item) -> set[str]:
    callspec = getattr(item, "callspec", None)
    parameters = callspec.id.split("-") if callspec is not None else []
    return set(STORES).intersection(parameters)


class Collector:
    """A pytest plugin that notes what every collected test proves."""

    def __init__(self) -> None:
        self.proofs = {name: Proof(title) for name, title in titles().items()}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for name in requirements_of(item):
                self.proofs[name].tests.add(item.nodeid.partition("[")[0])
                self.proofs[name].stores |= stores_of(item)


def collect() -> dict[str, Proof]:
    collector = Collector()
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = pytest.main(["--collect-only", "-q"], plugins=[collector])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise click.ClickException(f"the tests cannot be collected:\n{output.getvalue()}")
    return collector.proofs


def table(proofs: dict[str, Proof]) -> str:
    rows = [("", "requirement", "tests", "stores", "proved by")]
    for name, proof in proofs.items():
        rows.append((name, proof.title, str(len(proof.tests)), _stores(proof), _names(proof)))
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return "\n".join(_line(row, widths) for row in rows)


def _line(row: Iterable[str], widths: list[int]) -> str:
    cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    return "  ".join(cells).rstrip()


def _stores(proof: Proof) -> str:
    return "both" if proof.stores == set(STORES) else " ".join(proof.stores) or "-"


def _names(proof: Proof) -> str:
    names = sorted({test.rpartition("::")[2] for test in proof.tests})
    more = [f"and {len(names) - NAMES_SHOWN} more"] if len(names) > NAMES_SHOWN else []
    return ", ".join([*names[:NAMES_SHOWN], *more]) or "none"


def as_json(proofs: dict[str, Proof]) -> str:
    content = {
        name: {"title": proof.title, "tests": sorted(proof.tests), "stores": sorted(proof.stores)}
        for name, proof in proofs.items()
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def unproved(proofs: dict[str, Proof], patterns: list[str]) -> list[str]:
    """The requirements that match a pattern and have no test; every pattern must match some."""
    missing: list[str] = []
    for pattern in patterns:
        matching = [name for name in proofs if fnmatchcase(name, pattern)]
        if not matching:
            raise click.ClickException(f"no requirement is called {pattern}")
        missing += [name for name in matching if not proofs[name].tests and name not in missing]
    return missing


@click.command()
@click.option("--json", "wants_json", is_flag=True, help="Print JSON, with all test names.")
@click.option("--require", default="", metavar="ID,ID…", help="Fail if one has no test: 'S0.*,P1'.")
def main(wants_json: bool, require: str) -> None:
    """Show which tests prove which requirement."""
    proofs = collect()
    click.echo(as_json(proofs) if wants_json else table(proofs))
    missing = unproved(proofs, [name.strip() for name in require.split(",") if name.strip()])
    if missing:
        raise click.ClickException(f"no test proves {', '.join(missing)}")


if __name__ == "__main__":
    main()
