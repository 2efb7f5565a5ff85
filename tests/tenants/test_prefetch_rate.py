"""The prefetch among tenants follows from how long jobs take, not from how many end."""

from __future__ import annotations

import pytest

from freehold.tenants.prefetch_rate import PrefetchRate
from freehold.worker.slots import AHEAD_LIMIT

SLOTS = 10


class OneSlot:
    """A clock, and jobs that run one at a time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.rate = PrefetchRate(SLOTS, lambda: self.now)

    def run(self, seconds: float, idle: float, times: int = 20) -> int:
        """Returns how many would be claimed ahead."""
        for _ in range(times):
            self.now += idle
            self.rate.record(0)
            self.now += seconds
            self.rate.record(1, ended=1)
            self.rate.ahead(0)
        return self.rate.ahead(0)


@pytest.mark.requirement("S4.2")
def test_idle_time_between_short_jobs_does_not_reduce_the_prefetch() -> None:
    """Otherwise each claim brings one job, few jobs end, and the rate stays low: 200 a second."""
    assert OneSlot().run(0.01, idle=0.0) == pytest.approx(100, abs=1)
    assert OneSlot().run(0.01, idle=0.09) == pytest.approx(100, abs=1)


def test_the_prefetch_of_very_short_jobs_is_bounded() -> None:
    assert OneSlot().run(0.0001, idle=0.01) == AHEAD_LIMIT
    assert OneSlot().run(0.0, idle=0.01) == AHEAD_LIMIT


def test_long_jobs_are_not_claimed_ahead() -> None:
    assert OneSlot().run(5.0, idle=0.0) == 0


def test_nothing_is_claimed_ahead_at_first_and_after_an_idle_time() -> None:
    slot = OneSlot()
    assert slot.rate.ahead(0) == 0
    assert slot.run(0.01, idle=0.0) > 0
    slot.now += 1.0
    assert slot.rate.ahead(0) == 0


def test_jobs_that_do_not_end_count_as_long() -> None:
    slot = OneSlot()
    slot.run(0.01, idle=0.0)
    for _ in range(10):
        slot.now += 1.0
        found = slot.rate.ahead(SLOTS)
    assert found == 0
