"""Workers start at once and end slowly, within their bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.errors import BadSettings
from freehold.model.scaling import Load, Scale, ScaleRule, desired, rescale

RULE = ScaleRule(default_count=2, max_count=8, concurrency=10, cooldown_seconds=30)


@pytest.mark.requirement("S2.9")
@pytest.mark.parametrize(
    ("ready", "count"), [(0, 2), (20, 2), (21, 3), (79, 8), (80, 8), (1_000_000, 8)]
)
def test_one_worker_for_every_concurrency_jobs_within_the_bounds(ready: int, count: int) -> None:
    assert desired(RULE, Load(ready=ready)) == count


@pytest.mark.requirement("S2.9")
def test_jobs_that_run_keep_their_workers() -> None:
    assert desired(RULE, Load(ready=0, leased=45)) == 5


@pytest.mark.requirement("S2.9")
def test_up_at_once_and_down_only_after_a_whole_quiet_cooldown() -> None:
    scale = rescale(RULE, Scale(wanted=2), Load(ready=1000), now=0.0)
    assert scale.wanted == 8
    for now in (1.0, 10.0, 30.9):
        scale = rescale(RULE, scale, Load(ready=0), now)
        assert scale.wanted == 8
    assert rescale(RULE, scale, Load(ready=0), now=31.0).wanted == 2


@pytest.mark.requirement("S2.9")
def test_a_single_busy_check_restarts_the_cooldown() -> None:
    scale = Scale(wanted=8)
    scale = rescale(RULE, scale, Load(ready=0), now=0.0)
    scale = rescale(RULE, scale, Load(ready=80), now=29.0)
    scale = rescale(RULE, scale, Load(ready=0), now=31.0)
    assert scale.wanted == 8


@pytest.mark.requirement("S2.9")
@given(st.lists(st.tuples(st.integers(0, 500), st.floats(0.1, 20.0)), max_size=60))
def test_never_outside_the_bounds_and_at_most_one_step_down_in_a_cooldown(
    loads: list[tuple[int, float]],
) -> None:
    scale, now, last_down = Scale(wanted=2), 0.0, float("-inf")
    for ready, seconds in loads:
        now += seconds
        before = scale.wanted
        scale = rescale(RULE, scale, Load(ready=ready), now)
        assert RULE.default_count <= scale.wanted <= RULE.max_count
        assert scale.wanted >= min(desired(RULE, Load(ready=ready)), RULE.max_count)
        if scale.wanted < before:
            assert now - last_down >= RULE.cooldown_seconds
            last_down = now


def test_invalid_bounds_are_refused() -> None:
    with pytest.raises(BadSettings, match="default_count"):
        ScaleRule(default_count=5, max_count=4)


@pytest.mark.requirement("S2.9")
def test_a_job_that_waits_too_long_adds_one_worker_at_each_check() -> None:
    rule = ScaleRule(default_count=2, max_count=4, late_seconds=10)
    scale = Scale(wanted=2)
    for wanted, oldest in ((2, 10.0), (3, 10.1), (4, 11.0), (4, 12.0)):
        scale = rescale(rule, scale, Load(ready=1, oldest_seconds=oldest), now=0.0)
        assert scale.wanted == wanted
    assert rescale(RULE, Scale(wanted=2), Load(ready=1, oldest_seconds=1e6), now=0.0).wanted == 2
