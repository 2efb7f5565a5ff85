"""The lease protocol holds in every state of its model, and every part of it is needed."""

from __future__ import annotations

import re

import pytest

from tests.promela.spin import (
    LARGE,
    MODEL,
    MUTANTS,
    SMALL,
    SMALL_MUTANTS,
    missing_tools,
    search,
)
from tests.sizes import is_long
from tests.tidy.sources import PACKAGE

#: A model checker is not part of a development environment: see `needs_spin` in pyproject.toml.
needs_spin = pytest.mark.needs_spin
CONFIGURATIONS = SMALL | LARGE if is_long() else SMALL
TESTED_MUTANTS = tuple(MUTANTS) if is_long() else SMALL_MUTANTS


@pytest.fixture(autouse=True)
def spin(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("needs_spin") and (missing := missing_tools()):
        pytest.fail(missing, pytrace=False)


@needs_spin
@pytest.mark.requirement("S0.3", "S0.6", "S0.7", "S0.9")
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_the_model_has_every_property(configuration: str) -> None:
    found = search(*CONFIGURATIONS[configuration], is_large=configuration in LARGE)
    assert found.violated is None
    assert found.is_complete
    assert found.states > 100_000


@needs_spin
@pytest.mark.parametrize("mutant", TESTED_MUTANTS)
def test_a_mutant_violates_a_property(mutant: str) -> None:
    assert search(*MUTANTS[mutant], mutant).violated is not None


def test_the_model_documents_every_mutant() -> None:
    essay = MODEL.read_text("utf-8").split("*/")[0]
    listed = re.findall(r"^ \*   ([A-Z_]{5,}) {2,}", essay, re.MULTILINE)
    assert [name for name in listed if name in MUTANTS] == list(MUTANTS)


def test_the_model_names_statements_that_exist() -> None:
    folder = PACKAGE / "store" / "postgres" / "sql"
    named = set(re.findall(r"\b(_?[a-z_]+\.sql)\b", MODEL.read_text("utf-8")))
    assert len(named) >= 8
    assert {name for name in named if not (folder / name).is_file()} == set()
