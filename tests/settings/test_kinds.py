"""Simulated kinds: configured, and the same for the same input."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.model.simulated_kind import SimulatedKind, kind_of
from freehold.settings import load


@pytest.mark.requirement("S2.8")
def test_kinds_are_read_from_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "freehold.toml").write_text(
        "[kinds.mine]\nduration_ms = [10, 20]\noutcome = 'fail'\nretryable = false\n"
    )
    kinds = load(None, {}, tmp_path).kinds
    assert kinds == {"mine": SimulatedKind("mine", 10.0, 20.0, "fail", False, 0)}


def test_no_kind_exists_unless_it_is_configured(tmp_path: Path) -> None:
    assert load(None, {}, tmp_path).kinds == {}


@pytest.mark.requirement("S2.8")
@given(st.text(), st.text())
def test_the_same_input_always_has_the_same_duration(one: str, other: str) -> None:
    kind = kind_of("k", {"duration_ms": [100, 900]}, "here")
    assert kind.seconds(one) == kind.seconds(one)
    assert 0.1 <= kind.seconds(one) < 0.9
    assert (one == other) or kind.seconds(one) != kind.seconds(other)


@pytest.mark.requirement("S2.8")
def test_a_flaky_kind_fails_as_often_as_configured() -> None:
    kind = kind_of("k", {"duration_ms": 1, "fail_attempts": 2}, "here")
    assert [kind.ends(attempt) for attempt in (1, 2, 3)] == ["fail", "fail", "succeed"]
