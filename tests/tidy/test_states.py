"""The state machine is one table; docstring, page and schema agree with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from freehold.model import state
from freehold.model.state import (
    HOLDS_LANE,
    IN_LANE,
    NEEDS_LANE,
    STATE_OF_STAGE,
    TRANSITIONS,
    Stage,
    State,
)
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
        r"^\| `(\w+)` \| (\w+) \| (yes)?", ARCHITECTURE.read_text("utf-8"), re.MULTILINE
    )
    listed = {stage: (state, bool(holds)) for stage, state, holds in rows}
    assert listed == {
        stage.value: (STATE_OF_STAGE[stage].value, stage in HOLDS_LANE) for stage in Stage
    }


def test_the_list_of_bytes_has_the_stages_and_states_of_the_model() -> None:
    text = (PACKAGE / "store" / "stages.sql").read_text("utf-8")
    rows = re.findall(r"^\('(\w+)',\s*'(\w)', '(\w+)'\)", text, re.MULTILINE)
    assert {stage: state for stage, _, state in rows} == {
        stage.value: state.value for stage, state in STATE_OF_STAGE.items()
    }
    assert len({byte for _, byte, _ in rows}) == len(Stage)


#: What the schema lists -> the start of the list in each store, and the stages of the model.
_LISTS = {
    "valid": ({"postgres": "when stage not in (", "sqlite": "check (stage in ("}, set(Stage)),
    "needs a lane": (
        {"postgres": "when target is null and stage in (", "sqlite": "or stage not in ("},
        NEEDS_LANE,
    ),
    "holds a lane": (
        dict.fromkeys(STORES, "create unique index job_lane_holder"),
        HOLDS_LANE,
    ),
    "stands in a lane": (dict.fromkeys(STORES, "create index job_lane "), IN_LANE),
}


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("name", _LISTS)
def test_the_schema_lists_the_stages_of_the_model(store: str, name: str) -> None:
    """In the newest migration that has such a list: that is the one in force."""
    starts, expected = _LISTS[name]
    after = _schema(store).rpartition(starts[store])[2]
    if "stage" not in starts[store]:
        after = after.partition("stage in (")[2]
    found = re.findall(r"\{(\w+)\}", after.partition(")")[0])
    assert set(found) == {stage.value for stage in expected}


@pytest.mark.parametrize("store", STORES)
def test_sql_names_stages_by_words(store: str) -> None:
    """The bytes stand in stages.sql only."""
    quoted = re.compile(r"stage[^\n;]{0,40}'[A-Za-z]'")
    for path in sorted((PACKAGE / "store" / store).rglob("*.sql")):
        assert not quoted.search(path.read_text("utf-8")), path.name


def test_the_architecture_page_lists_the_indexes_of_live_jobs() -> None:
    listed = set(re.findall(r"^\| `(job_\w+)` \|", ARCHITECTURE.read_text("utf-8"), re.MULTILINE))
    created = set()
    for verb, text in re.findall(
        r"^(create|drop)\b([^;]*\bindex\b[^;]*);", _schema("postgres"), re.MULTILINE
    ):
        if verb == "create":
            created |= set(re.findall(r"index (job_\w+) on \{schema\}\.job ", text))
        else:
            created -= set(re.findall(r"\{schema\}\.(job_\w+)", text))
    assert listed == created


def _schema(store: str) -> str:
    folder: Path = PACKAGE / "store" / store / "migrations"
    return "\n".join(path.read_text("utf-8") for path in sorted(folder.glob("*.sql")))
