"""The retry policy: how long, how often, after which exceptions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.errors import BadSettings
from freehold.model.retry import MAX_ATTEMPTS_LIMIT, WAIT_LIMIT_SECONDS, Retry

numbers = st.floats(0.0, 1e308)
chances = st.floats(0.0, 1.0, exclude_max=True)
attempts = st.integers(1, MAX_ATTEMPTS_LIMIT)
retries = st.builds(
    Retry,
    base_seconds=st.floats(0.0, 1e6) | numbers,
    factor=st.floats(1.0, 10.0) | st.floats(1.0, 1e308),
    cap_seconds=st.floats(0.0, 1e6) | st.floats(0.0, WAIT_LIMIT_SECONDS),
    jitter=st.floats(0.0, 1.0),
)


@pytest.mark.requirement("S2.6")
@given(retry=retries, attempt=attempts, chance=chances)
def test_a_wait_is_never_negative_and_never_above_the_cap(
    retry: Retry, attempt: int, chance: float
) -> None:
    assert 0.0 <= retry.delay_seconds(attempt, chance) <= retry.cap_seconds


@pytest.mark.requirement("S2.6")
@given(chance=chances)
def test_the_default_survives_an_outage_of_an_hour(chance: float) -> None:
    default = Retry()
    waits = [default.delay_seconds(each, chance) for each in range(1, default.max_attempts)]
    assert sum(waits) > 3600
    assert sum(waits[:9]) < 600, "a short outage must not delay the job for long"


@pytest.mark.requirement("S2.6")
@given(retry=retries, attempt=attempts, chance=chances)
def test_waits_never_shrink_from_attempt_to_attempt(
    retry: Retry, attempt: int, chance: float
) -> None:
    now, next_time = (retry.delay_seconds(each, chance) for each in (attempt, attempt + 1))
    assert now <= next_time


@pytest.mark.requirement("S2.6")
@given(retry=retries, attempt=attempts, chance=chances)
def test_jitter_takes_away_at_most_its_share(retry: Retry, attempt: int, chance: float) -> None:
    full = retry.delay_seconds(attempt, 0.0)
    assert full * (1.0 - retry.jitter) <= retry.delay_seconds(attempt, chance) <= full


@pytest.mark.requirement("S2.6")
@given(chance=chances, attempt=attempts)
def test_without_jitter_chance_has_no_effect(chance: float, attempt: int) -> None:
    retry = Retry(jitter=0.0)
    assert retry.delay_seconds(attempt, chance) == retry.delay_seconds(attempt, 0.0)


@pytest.mark.requirement("S2.6")
def test_waits_double_up_to_the_cap() -> None:
    retry = Retry(base_seconds=1.0, factor=2.0, cap_seconds=10.0, jitter=0.0)
    assert [retry.delay_seconds(n, 0.5) for n in range(1, 7)] == [1, 2, 4, 8, 10, 10]


@pytest.mark.requirement("S2.6")
def test_slow_growth_reaches_the_cap_too() -> None:
    retry = Retry(base_seconds=1.0, factor=1.1, cap_seconds=3600.0, jitter=0.0)
    assert retry.delay_seconds(100, 0.0) == 3600.0


@pytest.mark.requirement("S2.6")
@given(attempt=attempts, chance=chances)
def test_no_base_means_no_wait_however_large_the_factor(attempt: int, chance: float) -> None:
    assert Retry(base_seconds=0.0, factor=1e10).delay_seconds(attempt, chance) == 0.0


@pytest.mark.requirement("S2.6")
@pytest.mark.parametrize("factor", [2, 2.0, 1e308])
def test_no_attempt_number_is_too_high(factor: float) -> None:
    retry = Retry(factor=factor, cap_seconds=60.0, jitter=0.0)
    assert retry.delay_seconds(MAX_ATTEMPTS_LIMIT, 0.0) == 60.0


class Flaky(Exception):
    pass


class Broken(Flaky):
    pass


@pytest.mark.requirement("S2.6")
@pytest.mark.parametrize(
    ("retry", "error", "hope"),
    [
        (Retry(), Flaky(), True),
        (Retry(), KeyboardInterrupt(), False),
        (Retry(retry_on=(Flaky,)), Flaky(), True),
        (Retry(retry_on=(Flaky,)), Broken(), True),
        (Retry(retry_on=(Flaky,)), ValueError(), False),
        (Retry(give_up_on=(Broken,)), Flaky(), True),
        (Retry(give_up_on=(Broken,)), Broken(), False),
        (Retry(retry_on=(Broken,), give_up_on=(Flaky,)), Broken(), False),
        (Retry(retry_on=()), Flaky(), False),
    ],
)
def test_exceptions_decide_whether_a_job_is_retried(
    retry: Retry, error: BaseException, hope: bool
) -> None:
    assert retry.is_retryable(error) is hope


@pytest.mark.requirement("S2.6")
@pytest.mark.parametrize("given", [[Broken, KeyError], {Broken, KeyError}, Broken])
def test_exceptions_can_be_given_in_several_forms(given: Any) -> None:
    """A value that isinstance refuses must not raise when a handler fails."""
    assert Retry(give_up_on=given).is_retryable(Broken()) is False
    assert Retry(retry_on=given).is_retryable(Broken()) is True
    assert Retry(retry_on=given).is_retryable(OSError()) is False


@pytest.mark.requirement("S2.6")
@pytest.mark.parametrize(
    "wrong",
    [
        {"max_attempts": 0},
        {"max_attempts": -1},
        {"max_attempts": MAX_ATTEMPTS_LIMIT + 1},
        {"base_seconds": -0.1},
        {"base_seconds": float("nan")},
        {"base_seconds": float("inf")},
        {"factor": 0.9},
        {"factor": float("inf")},
        {"cap_seconds": -1.0},
        {"cap_seconds": float("nan")},
        {"cap_seconds": 1e300},
        {"jitter": -0.1},
        {"jitter": 1.1},
        {"jitter": float("nan")},
        {"retry_on": "ValueError"},
        {"retry_on": (ValueError, "Broken")},
        {"give_up_on": 3},
    ],
)
def test_invalid_settings_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadSettings) as refusal:
        Retry(**wrong)
    (name,) = wrong
    assert str(refusal.value).startswith(f"{name}=")
    assert "give a" in str(refusal.value)
