"""Every accepted JSON value arrives equal, on both stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freehold import BadInput, Freehold
from tests.client.helpers import call_of, url_of
from tests.stores import PostgresUnderTest

TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=25,
)


def echo(value: Any) -> None: ...


@pytest.fixture(scope="module")
def apps(postgres_under_test: PostgresUnderTest) -> Iterator[list[Freehold]]:
    apps = [Freehold("sqlite://:memory:"), Freehold(url_of(postgres_under_test))]
    yield apps
    for app in apps:
        app.close()


@given(value=VALUES)
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_an_accepted_value_arrives_equal(apps: list[Freehold], value: Any) -> None:
    for app in apps:
        task = app.task(name="echo")(echo)
        try:
            job = task.enqueue(value).read()
        except BadInput:
            assert _is_refused_for_a_reason(value)
            continue
        # By repr, because 1 == 1.0 == True, and 0.0 == -0.0.
        assert repr(call_of(task, job)) == repr(((), {"value": value}))


def _is_refused_for_a_reason(value: Any) -> bool:
    """NUL, lone surrogates, and numbers that JSON does not have."""
    if isinstance(value, str):
        return any(char == "\0" or "\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, float):
        return value != value or value in (float("inf"), float("-inf"))
    if isinstance(value, dict):
        return any(map(_is_refused_for_a_reason, [*value, *value.values()]))
    return isinstance(value, list) and any(map(_is_refused_for_a_reason, value))
