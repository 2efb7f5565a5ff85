"""Who claims and who starts next, among tenants that share the slots of a process."""

from __future__ import annotations

import statistics
from collections import Counter
from itertools import groupby, pairwise

import pytest

from tests.hosts.scene import Clock, Tenants, held

MANY = 100_000
SLOW = 1000.0  # jobs so long that nothing is claimed ahead
QUICK = 0.001


@pytest.fixture
def clock() -> Clock:
    return Clock()


def busy(tenants: Tenants, clock: Clock, rounds: int, step: float, **away: frozenset[str]) -> None:
    tenants.settle(**away)
    for _ in range(rounds):
        clock.now += step
        tenants.round(**away)


@pytest.mark.requirement("S3.6", "S4.2")
@pytest.mark.parametrize("step", [SLOW, QUICK])
def test_starts_follow_the_weights_while_all_have_work(clock: Clock, step: float) -> None:
    tenants = Tenants(10, clock)
    for name, weight in (("five", 5.0), ("three", 3.0), ("one", 1.0)):
        tenants.add(name, weight, MANY)
    busy(tenants, clock, 3000, step)
    counts = Counter(tenants.started)
    total = sum(counts.values())
    for name, weight in (("five", 5), ("three", 3), ("one", 1)):
        assert counts[name] / total == pytest.approx(weight / 9, rel=0.02)


@pytest.mark.requirement("S3.6")
@pytest.mark.parametrize("step", [SLOW, QUICK])
def test_the_lightest_is_served_within_a_bounded_number_of_starts(
    clock: Clock, step: float
) -> None:
    tenants = Tenants(10, clock)
    tenants.add("heavy", 50.0, MANY)
    tenants.settle()
    tenants.add("light", 1.0, MANY)
    busy(tenants, clock, 1500, step)
    turns = [at for at, name in enumerate(tenants.started) if name == "light"]
    assert len(turns) > 10
    # By weight every 51st; what was claimed ahead of it may come before.
    assert max(after - before for before, after in pairwise(turns)) <= 2 * 51
    assert turns[0] <= 51


@pytest.mark.requirement("S3.6")
@pytest.mark.parametrize("step", [SLOW, QUICK])
def test_what_one_cannot_use_is_the_others(clock: Clock, step: float) -> None:
    """All but the slot that is kept for whoever is awake and might come."""
    tenants = Tenants(10, clock)
    idle = tenants.add("idle", 100.0, 0)
    tenants.add("two", 2.0, MANY)
    tenants.add("one", 1.0, MANY)
    busy(tenants, clock, 900, step)
    counts = Counter(tenants.started)
    assert tenants.capacity.running == 9
    idle.leave()
    del tenants.shares["idle"]
    tenants.settle()
    assert tenants.capacity.running == 10
    assert counts["two"] / counts["one"] == pytest.approx(2.0, rel=0.05)


def test_who_comes_back_from_idleness_has_saved_up_nothing(clock: Clock) -> None:
    tenants = Tenants(10, clock)
    tenants.add("busy", 1.0, MANY)
    tenants.add("late", 1.0, 0)
    busy(tenants, clock, 500, SLOW)
    tenants.backlog["late"] = MANY
    before = len(tenants.started)
    for _ in range(200):
        clock.now += SLOW
        tenants.round()
    counts = Counter(tenants.started[before:])
    assert counts["late"] == pytest.approx(100, abs=10)


def test_one_whose_store_hangs_stands_in_nobodys_way(clock: Clock) -> None:
    """It was let through and has not come back: what it was promised is all it keeps."""
    tenants = Tenants(10, clock)
    hung = tenants.add("hung", 1000.0, MANY)
    tenants.add("well", 1.0, MANY)
    tenants.claim("well")
    tenants.start_all()
    promised = hung.grant(hung.room())
    assert promised == 1  # the slot that was kept for it
    gone = frozenset({"hung"})
    before = len(tenants.started)
    for _ in range(100):
        clock.now += SLOW
        tenants.round(away=gone)
    assert Counter(tenants.started[before:]) == {"well": 100}
    assert tenants.capacity.running == 9


def test_max_slots_is_a_bound_and_the_rest_is_the_others(clock: Clock) -> None:
    tenants = Tenants(10, clock)
    bound = tenants.add("bound", 9.0, MANY, max_slots=2)
    tenants.add("free", 1.0, MANY)
    tenants.settle()
    for step in [SLOW] * 100 + [QUICK] * 500:
        clock.now += step
        tenants.round()
        assert len(bound.running) <= 2
        assert tenants.capacity.running == 10


def test_a_first_job_does_not_wait_behind_what_was_claimed_ahead(clock: Clock) -> None:
    tenants = Tenants(10, clock)
    flooded = tenants.add("flooded", 1.0, MANY)
    busy(tenants, clock, 1000, QUICK)
    assert len(flooded.waiting) > 30
    tenants.add("other", 1.0, 1)
    assert tenants.claim("other") >= 1
    tenants.end_one()
    tenants.start_all()
    assert tenants.started[-1] == "other"


@pytest.mark.requirement("S3.6")
@pytest.mark.parametrize("others", [1, 20])
def test_a_first_job_starts_before_whoever_has_the_turn(clock: Clock, others: int) -> None:
    """However many are busy, and if two come at once, in the order in which they came."""
    tenants = Tenants(10, clock)
    for number in range(others):
        tenants.add(f"t{number}", 1.0, MANY)
    for name in ("first", "second"):
        tenants.add(name, 1.0, 0)
    busy(tenants, clock, 500, QUICK)
    for moment in range(6):
        busy(tenants, clock, 37 + 17 * moment, QUICK)
        for name in ("first", "second"):
            tenants.backlog[name] = 1
            assert tenants.claim(name) >= 1
        before = len(tenants.started)
        while "second" not in tenants.started[before:]:
            clock.now += QUICK
            tenants.round()
        news = [name for name in tenants.started[before:] if name in ("first", "second")]
        assert news == ["first", "second"]
        assert tenants.started[before:].index("second") <= 2


@pytest.mark.requirement("S3.6")
def test_short_jobs_of_one_tenant_start_together(clock: Clock) -> None:
    """And end together, and are written together. Long ones take turns one by one."""
    for step, together in ((QUICK, 5), (SLOW, 1)):
        tenants = Tenants(10, clock)
        for number in range(20):
            tenants.add(f"t{number}", 1.0, MANY)
        busy(tenants, clock, 800, step)
        runs = [len(list(run)) for _, run in groupby(tenants.started[-400:])]
        # Ten slots and a job every millisecond: five milliseconds' work.
        assert statistics.median(runs) == max(runs) == together


def test_short_jobs_of_many_busy_tenants_are_not_claimed_one_by_one(clock: Clock) -> None:
    tenants = Tenants(10, clock)
    for number in range(20):
        tenants.add(f"t{number}", 1.0, MANY)
    busy(tenants, clock, 500, QUICK / 5)
    tenants.started.clear()
    tenants.claims.clear()
    busy(tenants, clock, 500, QUICK / 5)
    assert len(tenants.started) >= 3 * len(tenants.claims)


@pytest.mark.requirement("S4.2")
def test_many_that_wake_at_once_with_long_jobs_take_one_each(clock: Clock) -> None:
    tenants = Tenants(10, clock)
    tenants.add("flooded", 1.0, MANY)
    busy(tenants, clock, 3000, QUICK / 5)
    names = [f"slow{number}" for number in range(90)]
    for name in names:
        tenants.add(name, 1.0, MANY)
    shares = [tenants.shares[name] for name in names]
    grants = [share.grant(share.room()) for share in shares]
    assert set(grants[20:]) == {1}  # the first of them share what room there is


def test_who_was_frozen_between_its_room_and_its_turn_asks_again(clock: Clock) -> None:
    """Its pace is forgotten meanwhile, and nobody that stands at the gate has room."""
    tenants = Tenants(2, clock)
    share = tenants.add("one", 1.0, MANY)
    busy(tenants, clock, 1000, QUICK)
    while not (wanted := share.room()):
        tenants.end_one()
        tenants.start_all()
    clock.now += 10.0
    assert share.grant(wanted) >= 0


def test_slots_of_one_who_leaves_are_the_others_at_once(clock: Clock) -> None:
    tenants = Tenants(4, clock)
    leaving = tenants.add("leaving", 1.0, 4)
    tenants.settle()
    staying = tenants.add("staying", 1.0, 0)
    turns: list[str] = []
    staying.attach(lambda: None, lambda: turns.append("staying"))
    staying.take(held())
    leaving.leave()
    assert turns == ["staying"]


def test_one_slot_is_kept_for_whoever_is_awake_and_might_come(clock: Clock) -> None:
    tenants = Tenants(10, clock)
    tenants.add("light", 1.0, 0)
    tenants.add("flooded", 1.0, MANY)
    busy(tenants, clock, 100, SLOW)
    assert tenants.capacity.in_hand == tenants.capacity.running == 9
    tenants.backlog["light"] = 1
    assert tenants.claim("light") == 1
    tenants.start_all()
    assert tenants.started[-1] == "light"
    assert tenants.capacity.running == 10


def test_where_slots_turn_over_slowly_nothing_is_taken_that_could_not_start(clock: Clock) -> None:
    """Another process may have a slot for it."""
    tenants = Tenants(10, clock)
    tenants.add("busy", 1.0, MANY)
    busy(tenants, clock, 100, SLOW)
    tenants.add("other", 1.0, 5)
    assert tenants.claim("other") == 0
    assert tenants.capacity.in_hand == tenants.capacity.running == 10


def test_a_suspect_of_any_tenant_keeps_all_from_claiming_ahead(clock: Clock) -> None:
    tenants = Tenants(10, clock)
    plain = tenants.add("plain", 1.0, MANY)
    other = tenants.add("other", 1.0, 0)
    busy(tenants, clock, 500, QUICK)
    assert plain.waiting
    other.take(held(lost=1))
    for _ in range(500):
        clock.now += QUICK
        plain.end(next(iter(plain.running)))
        tenants.settle()
    assert (len(plain.running), len(plain.waiting), len(other.running)) == (9, 0, 1)


def test_who_leaves_takes_its_jobs_along(clock: Clock) -> None:
    tenants = Tenants(10, clock)
    leaving = tenants.add("leaving", 1.0, MANY)
    tenants.add("staying", 1.0, MANY)
    tenants.settle()
    for _ in range(50):
        clock.now += SLOW
        tenants.round()
    running = list(leaving.running)
    before = Counter(tenants.started)["staying"]
    leaving.leave()
    del tenants.shares["leaving"]
    tenants.settle()
    assert Counter(tenants.started)["staying"] == before + len(running)
    assert tenants.capacity.running == 10
    leaving.end(running[0])  # a handler that could not be stopped ends after all
    assert tenants.capacity.running == 10


def test_one_that_drains_stands_at_the_gate_no_more(clock: Clock) -> None:
    tenants = Tenants(2, clock)
    draining = tenants.add("draining", 100.0, MANY)
    tenants.add("other", 1.0, MANY)
    tenants.claim("other")
    tenants.start_all()
    assert draining.grant(draining.room()) == 0
    draining.give_back()
    tenants.end_one()
    assert tenants.claim("other") == 1


@pytest.mark.requirement("P3")
def test_what_waits_too_long_is_given_back_and_leaves_room(clock: Clock) -> None:
    tenants = Tenants(4, clock)
    share = tenants.add("a", 1.0, 0)
    for taken_at in (0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 2.0):
        share.take(held(taken_at=taken_at))
    tenants.start_all()
    clock.now = 2.5
    assert [each.taken_at for each in share.give_back_late()] == [1.0]
    assert len(share.waiting) == 2
    assert (tenants.capacity.running, tenants.capacity.in_hand) == (4, 6)


@pytest.mark.requirement("P3")
def test_a_first_job_that_waits_for_its_turn_stays(clock: Clock) -> None:
    """Given back, it would be claimed again at once, and again."""
    tenants = Tenants(4, clock)
    busy_one, light = tenants.add("busy", 1.0, 0), tenants.add("light", 1.0, 0)
    for _ in range(4):
        busy_one.take(held())
    tenants.start_all()
    light.grant(1)
    light.take(held())
    clock.now = 60.0
    assert light.give_back_late() == []
    busy_one.end(next(iter(busy_one.running)))
    assert tenants.capacity.first_to_start() is light


def test_a_changed_weight_counts_from_now_on(clock: Clock) -> None:
    tenants = Tenants(10, clock)
    tenants.add("a", 1.0, MANY)
    tenants.add("b", 1.0, MANY)
    busy(tenants, clock, 100, SLOW)
    tenants.capacity.change(tenants.shares["a"], 4.0, None)
    before = len(tenants.started)
    for _ in range(500):
        clock.now += SLOW
        tenants.round()
    counts = Counter(tenants.started[before:])
    assert counts["a"] / counts["b"] == pytest.approx(4.0, rel=0.1)
