"""Workers that keep crashing are restarted ever more slowly, and at once after that."""

from __future__ import annotations

from freehold.manager.restart_backoff import (
    FIRST_SECONDS,
    LONGEST_SECONDS,
    SOON_SECONDS,
    RestartBackoff,
)


def test_the_wait_doubles_up_to_a_bound_while_starts_fail() -> None:
    backoff, now, waits = RestartBackoff(), 0.0, []
    for _ in range(10):
        assert backoff.is_over(now)
        assert backoff.ended(started_at=now, now=now + 1.0)
        now += 1.0
        assert not backoff.is_over(now)
        waits.append(backoff.seconds)
        now += backoff.seconds
    assert waits[:3] == [FIRST_SECONDS, FIRST_SECONDS * 2, FIRST_SECONDS * 4]
    assert waits[-1] == LONGEST_SECONDS


def test_a_worker_that_ran_for_a_while_is_replaced_at_once() -> None:
    backoff = RestartBackoff()
    assert not backoff.ended(started_at=0.0, now=SOON_SECONDS)
    assert backoff.is_over(SOON_SECONDS)


def test_the_wait_is_reset_when_a_later_worker_stays_alive() -> None:
    backoff = RestartBackoff()
    for _ in range(3):
        backoff.ended(started_at=10.0, now=11.0)
    backoff.alive(started_at=5.0, now=100.0)  # started before the failures: proves nothing
    backoff.ended(started_at=100.0, now=101.0)
    assert backoff.seconds == FIRST_SECONDS * 8
    backoff.alive(started_at=102.0, now=102.0 + SOON_SECONDS)
    backoff.ended(started_at=110.0, now=111.0)
    assert backoff.seconds == FIRST_SECONDS


def test_a_change_of_code_ends_the_wait() -> None:
    backoff = RestartBackoff()
    backoff.ended(started_at=0.0, now=1.0)
    backoff.reset()
    assert backoff.is_over(1.0)
