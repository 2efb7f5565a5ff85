"""The state machine is one table; whatever draws it draws the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from freehold.model import state
from freehold.model.state import HOLDS_LANE, STATE_OF_STAGE, TRANSITIONS, Stage, State
from tests.tidy.sources import PACKAGE, ROOT, STORES

ARCHITECTURE = ROOT / "docs" / "architecture.md"


def _arrows(text: str) -> set[tuple[str, str]]:
    """Lines such as `paused -> queued | canceled`."""
    drawn = re.findall(r"^ *([a-z, ]+?) +-> +([a-z| ]+?)(?: {2,}.*)?$", text, re.MULTILINE)
    return {
        (source.strip(), goal.strip())
        for sources, goals in drawn
        for source in sources.split(",")
        for goal in goals.split("|")
    }


_TABLE = {(source.value, goal.value) for source, goals in TRANSITIONS.items() for goal in goals}


def test_the_docstring_draws_the_table() -> None:
    assert _arrows(state.__doc__ or "") == _TABLE


def test_the_architecture_page_draws_the_table() -> None:
    assert _arrows(ARCHITECTURE.read_text("utf-8")) == _TABLE


def test_every_state_has_its_arrows() -> None:
    assert set(TRANSITIONS) == set(State)


def test_the_architecture_page_lists_every_stage() -> None:
    rows = re.findall(
        r"^\| `(\w)` \| (\w+) \| (yes)?", ARCHITECTURE.read_text("utf-8"), re.MULTILINE
    )
    listed = {letter: (seen, bool(holds)) for letter, seen, holds in rows}
    assert listed == {
        stage.value: (STATE_OF_STAGE[stage].value, stage in HOLDS_LANE) for stage in Stage
    }


@pytest.mark.parametrize("store", STORES)
def test_the_schema_knows_the_same_stages(store: str) -> None:
    sql = _schema(store)
    letters = re.search(r"constraint job_stage check \(stage in \(([^)]*)\)", sql)
    assert letters is not None
    assert set(re.findall(r"'(\w)'", letters[1])) == {stage.value for stage in Stage}


@pytest.mark.parametrize("store", STORES)
def test_the_index_of_holders_knows_the_same_stages(store: str) -> None:
    letters = re.search(
        r"create unique index job_holder.*?stage in \(([^)]*)\)", _schema(store), re.DOTALL
    )
    assert letters is not None
    assert set(re.findall(r"'(\w)'", letters[1])) == {stage.value for stage in HOLDS_LANE}


def _schema(store: str) -> str:
    folder: Path = PACKAGE / "store" / store / "migrations"
    return "\n".join(path.read_text("utf-8") for path in sorted(folder.glob("*.sql")))
