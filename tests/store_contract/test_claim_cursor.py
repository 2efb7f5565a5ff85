"""A claim goes on where the last one ended; what came in behind it does not wait for long."""

from __future__ import annotations

from freehold.model.outcome import OutcomeKind
from freehold.store.verbs.claim import ClaimCursors
from tests.stores import StoreUnderTest


class Watch:
    """A clock by which every claim takes a set time."""

    def __init__(self, cost: float) -> None:
        self.now = 100.0
        self.cost = cost

    def __call__(self) -> float:
        self.now += self.cost
        return self.now


def ids(store: StoreUnderTest, cursors: ClaimCursors, count: int = 100) -> list[int]:
    return [attempt.job_id for attempt in store.claim(cursors=cursors, count=count)]


def test_cheap_claims_restart_at_once_for_jobs_in_front_of_the_cursor(
    store: StoreUnderTest,
) -> None:
    cursors = ClaimCursors(Watch(0.0))
    low = store.add(priority=-1)
    first = store.add()
    assert ids(store, cursors, 1) == [first]
    high = store.add(priority=5)
    # What was found waits for no other look.
    assert sorted(ids(store, cursors) + ids(store, cursors)) == [low, high]
    assert cursors["default"].unsure_seconds() == 0.0


def test_expensive_claims_restart_later_and_still_find_jobs_in_front_of_the_cursor(
    store: StoreUnderTest,
) -> None:
    """A lane's next comes back under its old number, behind what was claimed meanwhile."""
    watch = Watch(0.02)
    cursors = ClaimCursors(watch)
    first = store.add(target="lane")
    second = store.add(target="lane")
    others = [store.add() for _ in range(3)]
    cursor = cursors["default"]
    attempts = store.claim(cursors=cursors, count=4)
    assert {attempt.job_id for attempt in attempts} == {first, *others}
    store.end(next(each for each in attempts if each.job_id == first), OutcomeKind.SUCCESS)
    if store.kind == "postgres":  # SQLite has no dead entries, and always begins at the start
        assert ids(store, cursors) == []
        assert 0.0 < cursor.unsure_seconds() <= 1.0
        watch.now += cursor.unsure_seconds()
    assert ids(store, cursors) == [second]
