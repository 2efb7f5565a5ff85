"""How many jobs a worker claims ahead, and which it gives back."""

from __future__ import annotations

import pytest

from freehold.worker.held_leases import HeldLease
from freehold.worker.slots import AHEAD_LIMIT, PrefetchPace, Slots
from tests.tenants.simulated_claims import Clock, held_lease


@pytest.fixture
def clock() -> Clock:
    return Clock(100.0)


def end(pace: PrefetchPace, count: int) -> None:
    pace.ended += count


def test_a_flood_is_met_with_large_claims_within_milliseconds(clock: Clock) -> None:
    pace = PrefetchPace(clock)
    clock.now += 10
    assert pace.ahead() == 0
    clock.now += 0.005
    end(pace, 50)
    assert pace.ahead() == AHEAD_LIMIT


def test_jobs_that_end_at_one_moment_are_no_flood(clock: Clock) -> None:
    """A hundred slots with jobs of half a second: 200 end in a second, not 20,000."""
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


def test_ends_without_elapsed_time_give_no_rate(clock: Clock) -> None:
    pace = PrefetchPace(clock)
    end(pace, 1000)
    assert pace.ahead() == 0


def limited(claimed_at: float) -> HeldLease:
    return HeldLease(held_lease().attempt, 1e9, claimed_at=claimed_at, is_limited=True)


@pytest.mark.requirement("P3", "P8")
def test_jobs_that_waited_a_second_are_given_back_unless_they_are_limited(clock: Clock) -> None:
    """A limited job has used up a start of its rate: a second claim would use up another."""
    slots = Slots(1, clock)
    runs, late = held_lease(), held_lease(claimed_at=100.0)
    fresh = held_lease(claimed_at=100.9)
    for each in (runs, late, limited(claimed_at=100.0), fresh):
        slots.add(each)
    assert slots.next() is not None
    clock.now = 101.5
    given = slots.give_back_late()
    assert late in given
    assert fresh not in given
    assert not any(each.is_limited for each in given)
    assert len(given) + len(slots.waiting) + len(slots.running) == 4
