"""A claim goes on where the last one ended; what came in behind it does not wait for long."""

from __future__ import annotations

from freehold.model.outcome import OutcomeKind
from freehold.store.claim_cursor import ClaimCursors
from tests.stores import StoreUnderTest


class Watch:
    """A clock by which every look takes as long as it is told."""

    def __init__(self, cost: float) -> None:
        self.now = 100.0
        self.cost = cost

    def __call__(self) -> float:
        self.now += self.cost
        return self.now


def ids(store: StoreUnderTest, memory: ClaimCursors, count: int = 100) -> list[int]:
    return [attempt.job_id for attempt in store.claim(memory=memory, count=count)]


def test_while_looks_are_cheap_nothing_behind_the_place_waits(store: StoreUnderTest) -> None:
    memory = ClaimCursors(Watch(0.0))
    low = store.add(priority=-1)
    first = store.add()
    assert ids(store, memory, 1) == [first]
    high = store.add(priority=5)
    # What was found waits for no other look.
    assert sorted(ids(store, memory) + ids(store, memory)) == [low, high]
    assert memory.place("default").unsure_seconds() == 0.0


def test_while_looks_are_dear_what_is_behind_waits_and_is_not_forgotten(
    store: StoreUnderTest,
) -> None:
    """A lane's next comes back under its old number, behind what was claimed meanwhile."""
    watch = Watch(0.02)
    memory = ClaimCursors(watch)
    first = store.add(target="lane")
    second = store.add(target="lane")
    others = [store.add() for _ in range(3)]
    place = memory.place("default")
    attempts = store.claim(memory=memory, count=4)
    assert {attempt.job_id for attempt in attempts} == {first, *others}
    store.end(next(each for each in attempts if each.job_id == first), OutcomeKind.SUCCESS)
    if store.kind == "postgres":  # SQLite has no dead entries, and always begins at the start
        assert ids(store, memory) == []
        assert 0.0 < place.unsure_seconds() <= 1.0
        watch.now += place.unsure_seconds()
    assert ids(store, memory) == [second]
