"""What is claimed ahead among tenants follows from how long jobs take, not from how many end."""

from __future__ import annotations

import pytest

from freehold.tenants.prefetch_rate import PrefetchRate
from freehold.worker.slots import AHEAD_LIMIT

SLOTS = 10


class Slots:
    """Time, and jobs that run one at a time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.turnover = PrefetchRate(SLOTS, lambda: self.now)

    def run(self, seconds: float, idle: float, times: int = 20) -> int:
        """Answers how many would be claimed ahead."""
        for _ in range(times):
            self.now += idle
            self.turnover.changes(0)
            self.now += seconds
            self.turnover.changes(1, ended=1)
            self.turnover.ahead(0)
        return self.turnover.ahead(0)


@pytest.mark.requirement("S4.2")
def test_slots_that_stand_empty_between_short_jobs_do_not_make_them_long() -> None:
    """Each claim brought one job, because so few ended that more seemed too many: 200 a second."""
    assert Slots().run(0.01, idle=0.0) == pytest.approx(100, abs=1)
    assert Slots().run(0.01, idle=0.09) == pytest.approx(100, abs=1)


def test_of_the_shortest_a_bounded_number_is_claimed_ahead() -> None:
    assert Slots().run(0.0001, idle=0.01) == AHEAD_LIMIT
    assert Slots().run(0.0, idle=0.01) == AHEAD_LIMIT


def test_of_long_ones_none_is() -> None:
    assert Slots().run(5.0, idle=0.0) == 0


def test_at_first_and_after_a_pause_nothing_is_known() -> None:
    slots = Slots()
    assert slots.turnover.ahead(0) == 0
    assert slots.run(0.01, idle=0.0) > 0
    slots.now += 1.0
    assert slots.turnover.ahead(0) == 0


def test_jobs_that_do_not_end_are_long_ones() -> None:
    slots = Slots()
    slots.run(0.01, idle=0.0)
    for _ in range(10):
        slots.now += 1.0
        found = slots.turnover.ahead(SLOTS)
    assert found == 0
