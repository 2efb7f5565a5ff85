"""How much a worker claims ahead, and what it gives back."""

from __future__ import annotations

import pytest

from freehold.worker.held_leases import HeldLease
from freehold.worker.slots import AHEAD_LIMIT, PrefetchPace, Slots
from tests.hosts.scene import Clock, held


@pytest.fixture
def clock() -> Clock:
    return Clock(100.0)


def end(pace: PrefetchPace, count: int) -> None:
    for _ in range(count):
        pace.end()


def test_a_flood_is_met_with_large_claims_within_milliseconds(clock: Clock) -> None:
    pace = PrefetchPace(clock)
    clock.now += 10
    assert pace.ahead() == 0
    clock.now += 0.005
    end(pace, 50)
    assert pace.ahead() == AHEAD_LIMIT


def test_jobs_that_end_at_one_moment_are_no_flood(clock: Clock) -> None:
    """A hundred slots whose jobs take half a second: 200 end in a second, not 20,000."""
    pace = PrefetchPace(clock)
    seen = []
    for _ in range(20):
        clock.now += 0.5
        end(pace, 1)
        seen.append(pace.ahead())
        clock.now += 0.004
        end(pace, 99)
        seen.append(pace.ahead())
    assert max(seen) < 150


def test_a_flood_that_has_ended_is_forgotten(clock: Clock) -> None:
    pace = PrefetchPace(clock)
    clock.now += 0.005
    end(pace, 50)
    assert pace.ahead() == AHEAD_LIMIT
    clock.now += 1
    end(pace, 10)
    assert pace.ahead() <= 2


def test_time_that_stands_still_says_nothing(clock: Clock) -> None:
    pace = PrefetchPace(clock)
    end(pace, 1000)
    assert pace.ahead() == 0


def limited(taken_at: float) -> HeldLease:
    return HeldLease(held().attempt, 1e9, taken_at=taken_at, is_limited=True)


@pytest.mark.requirement("P3", "P8")
def test_what_has_waited_for_a_second_is_given_back_but_not_what_is_limited(clock: Clock) -> None:
    """A start of its rate is used up: whoever claimed it again would use up another."""
    slots = Slots(1, clock)
    runs, late, fresh = held(), held(taken_at=100.0), held(taken_at=100.9)
    for each in (runs, late, limited(taken_at=100.0), fresh):
        slots.take(each)
    assert slots.next() is not None
    clock.now = 101.5
    given = slots.give_back_late()
    assert late in given
    assert fresh not in given
    assert not any(each.is_limited for each in given)
    assert len(given) + len(slots.waiting) + len(slots.running) == 4
