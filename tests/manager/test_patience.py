"""Workers that keep dying are started ever more slowly, and at once when that is over."""

from __future__ import annotations

from freehold.manager.restart_backoff import (
    FIRST_SECONDS,
    LONGEST_SECONDS,
    SOON_SECONDS,
    RestartBackoff,
)


def test_it_doubles_up_to_a_bound_while_they_die_soon() -> None:
    patience, now, waits = RestartBackoff(), 0.0, []
    for _ in range(10):
        assert patience.is_over(now)
        assert patience.died(began=now, now=now + 1.0)
        now += 1.0
        assert not patience.is_over(now)
        waits.append(patience.seconds)
        now += patience.seconds
    assert waits[:3] == [FIRST_SECONDS, FIRST_SECONDS * 2, FIRST_SECONDS * 4]
    assert waits[-1] == LONGEST_SECONDS


def test_one_that_has_worked_for_a_while_is_replaced_at_once() -> None:
    patience = RestartBackoff()
    assert not patience.died(began=0.0, now=SOON_SECONDS)
    assert patience.is_over(SOON_SECONDS)


def test_it_is_over_when_one_lives_that_was_started_since() -> None:
    patience = RestartBackoff()
    for _ in range(3):
        patience.died(began=10.0, now=11.0)
    patience.lives(began=5.0, now=100.0)  # older than the trouble: says nothing about it
    patience.died(began=100.0, now=101.0)
    assert patience.seconds == FIRST_SECONDS * 8
    patience.lives(began=102.0, now=102.0 + SOON_SECONDS)
    patience.died(began=110.0, now=111.0)
    assert patience.seconds == FIRST_SECONDS


def test_a_change_makes_it_try_at_once() -> None:
    patience = RestartBackoff()
    patience.died(began=0.0, now=1.0)
    patience.forget()
    assert patience.is_over(1.0)
