"""Which tenant claims and starts next, among tenants that share the slots of a process."""

from __future__ import annotations

import statistics
from collections import Counter
from itertools import groupby, pairwise

import pytest

from tests.tenants.simulated_claims import Clock, SimulatedTenants, held_lease

MANY = 100_000
SLOW = 1000.0  # with jobs this long nothing is claimed ahead
QUICK = 0.001


@pytest.fixture
def clock() -> Clock:
    return Clock()


def busy(
    tenants: SimulatedTenants, clock: Clock, rounds: int, step: float, **away: frozenset[str]
) -> None:
    tenants.settle(**away)
    for _ in range(rounds):
        clock.now += step
        tenants.round(**away)


@pytest.mark.requirement("S3.6", "S4.2")
@pytest.mark.parametrize("step", [SLOW, QUICK])
def test_starts_follow_the_weights_while_all_have_work(clock: Clock, step: float) -> None:
    tenants = SimulatedTenants(10, clock)
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
    tenants = SimulatedTenants(10, clock)
    tenants.add("heavy", 50.0, MANY)
    tenants.settle()
    tenants.add("light", 1.0, MANY)
    busy(tenants, clock, 1500, step)
    turns = [at for at, name in enumerate(tenants.started) if name == "light"]
    assert len(turns) > 10
    # Every 51st by weight; jobs that were claimed ahead may start before.
    assert max(after - before for before, after in pairwise(turns)) <= 2 * 51
    assert turns[0] <= 51


@pytest.mark.requirement("S3.6")
@pytest.mark.parametrize("step", [SLOW, QUICK])
def test_slots_that_one_tenant_cannot_use_go_to_the_others(clock: Clock, step: float) -> None:
    """All but the slot that is reserved for awake tenants that hold nothing."""
    tenants = SimulatedTenants(10, clock)
    idle = tenants.add("idle", 100.0, 0)
    tenants.add("two", 2.0, MANY)
    tenants.add("one", 1.0, MANY)
    busy(tenants, clock, 900, step)
    counts = Counter(tenants.started)
    assert tenants.slots.use.running == 9
    idle.leave()
    del tenants.tenants["idle"]
    tenants.settle()
    assert tenants.slots.use.running == 10
    assert counts["two"] / counts["one"] == pytest.approx(2.0, rel=0.05)


def test_a_tenant_earns_no_credit_while_it_is_idle(clock: Clock) -> None:
    tenants = SimulatedTenants(10, clock)
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


def test_a_tenant_whose_store_hangs_does_not_delay_the_others(clock: Clock) -> None:
    """Its claim does not end: it keeps only the room that it was granted."""
    tenants = SimulatedTenants(10, clock)
    hung = tenants.add("hung", 1000.0, MANY)
    tenants.add("well", 1.0, MANY)
    tenants.claim("well")
    tenants.start_all()
    granted = hung.grant(hung.room())
    assert granted == 1  # the reserved slot
    gone = frozenset({"hung"})
    before = len(tenants.started)
    for _ in range(100):
        clock.now += SLOW
        tenants.round(away=gone)
    assert Counter(tenants.started[before:]) == {"well": 100}
    assert tenants.slots.use.running == 9


def test_a_claim_that_hangs_with_all_the_room_does_not_delay_the_others(clock: Clock) -> None:
    """Its last jobs were so short that it was granted a large prefetch."""
    tenants = SimulatedTenants(4, clock)
    hung = tenants.add("hung", 1.0, 100)
    tenants.add("well", 1.0, 100)
    busy(tenants, clock, 200, QUICK)
    assert hung.grant(1000) > 4
    clock.now += 10.0  # so long after those jobs nothing is claimed ahead
    tenants.backlog["well"] = MANY
    gone, before = frozenset({"hung"}), len(tenants.started)
    tenants.settle(away=gone)
    assert tenants.started[before:] == []
    tenants.slots.end_stalled_grants()
    busy(tenants, clock, 10, SLOW, away=gone)
    assert tenants.slots.use.running == 4
    for _ in range(2):  # its jobs wait for a slot
        hung.add(held_lease(1))
    hung.claim_ended(0, 2)
    assert (tenants.slots.use.granted, tenants.slots.use.held) == (0, 6)


def test_max_slots_is_a_bound_and_the_other_slots_are_used(clock: Clock) -> None:
    tenants = SimulatedTenants(10, clock)
    bound = tenants.add("bound", 9.0, MANY, max_slots=2)
    tenants.add("free", 1.0, MANY)
    tenants.settle()
    for step in [SLOW] * 100 + [QUICK] * 500:
        clock.now += step
        tenants.round()
        assert len(bound.running) <= 2
        assert tenants.slots.use.running == 10


def test_a_first_job_does_not_wait_behind_what_was_claimed_ahead(clock: Clock) -> None:
    tenants = SimulatedTenants(10, clock)
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
def test_a_first_job_starts_before_the_current_slice(clock: Clock, others: int) -> None:
    """However many tenants are busy; two first jobs start in the order of their claims."""
    tenants = SimulatedTenants(10, clock)
    for number in range(others):
        tenants.add(f"t{number}", 1.0, MANY)
    for name in ("first", "second"):
        tenants.add(name, 1.0, 0)
    busy(tenants, clock, 500, QUICK)
    for number in range(6):
        busy(tenants, clock, 37 + 17 * number, QUICK)
        for name in ("first", "second"):
            tenants.backlog[name] = 1
            assert tenants.claim(name) >= 1
        before = len(tenants.started)
        while "second" not in tenants.started[before:]:
            clock.now += QUICK
            tenants.round()
        firsts = [name for name in tenants.started[before:] if name in ("first", "second")]
        assert firsts == ["first", "second"]
        assert tenants.started[before:].index("second") <= 2


@pytest.mark.requirement("S3.6")
def test_short_jobs_of_one_tenant_start_together(clock: Clock) -> None:
    """So they end together and are written together. Long jobs start one by one."""
    for step, together in ((QUICK, 5), (SLOW, 1)):
        tenants = SimulatedTenants(10, clock)
        for number in range(20):
            tenants.add(f"t{number}", 1.0, MANY)
        busy(tenants, clock, 800, step)
        runs = [len(list(run)) for _, run in groupby(tenants.started[-400:])]
        # Ten slots and a job every millisecond: five milliseconds' work.
        assert statistics.median(runs) == max(runs) == together


def test_short_jobs_of_many_busy_tenants_are_not_claimed_one_by_one(clock: Clock) -> None:
    tenants = SimulatedTenants(10, clock)
    for number in range(20):
        tenants.add(f"t{number}", 1.0, MANY)
    busy(tenants, clock, 500, QUICK / 5)
    tenants.started.clear()
    tenants.claims.clear()
    busy(tenants, clock, 500, QUICK / 5)
    assert len(tenants.started) >= 3 * len(tenants.claims)


@pytest.mark.requirement("S4.2")
def test_many_tenants_that_wake_at_once_with_long_jobs_claim_one_each(clock: Clock) -> None:
    tenants = SimulatedTenants(10, clock)
    tenants.add("flooded", 1.0, MANY)
    busy(tenants, clock, 3000, QUICK / 5)
    names = [f"slow{number}" for number in range(90)]
    for name in names:
        tenants.add(name, 1.0, MANY)
    grants = [(slots := tenants.tenants[name]).grant(slots.room()) for name in names]
    assert set(grants[20:]) == {1}  # the first of them share the free room


def test_a_grant_after_a_freeze_of_the_process_does_not_fail(clock: Clock) -> None:
    """The prefetch rate has expired meanwhile, and no tenant in the claim queue has room."""
    tenants = SimulatedTenants(2, clock)
    share = tenants.add("one", 1.0, MANY)
    busy(tenants, clock, 1000, QUICK)
    while not (wanted := share.room()):
        tenants.end_one()
        tenants.start_all()
    clock.now += 10.0
    assert share.grant(wanted) >= 0


def test_slots_of_a_tenant_that_leaves_are_offered_at_once(clock: Clock) -> None:
    tenants = SimulatedTenants(4, clock)
    leaving = tenants.add("leaving", 1.0, 4)
    tenants.settle()
    staying = tenants.add("staying", 1.0, 0)
    offered: list[str] = []
    staying.attach(lambda: None, lambda: offered.append("staying"))
    staying.add(held_lease())
    leaving.leave()
    assert offered == ["staying"]


def test_one_slot_is_reserved_for_awake_tenants_that_hold_nothing(clock: Clock) -> None:
    tenants = SimulatedTenants(10, clock)
    tenants.add("light", 1.0, 0)
    tenants.add("flooded", 1.0, MANY)
    busy(tenants, clock, 100, SLOW)
    assert tenants.slots.use.held == tenants.slots.use.running == 9
    tenants.backlog["light"] = 1
    assert tenants.claim("light") == 1
    tenants.start_all()
    assert tenants.started[-1] == "light"
    assert tenants.slots.use.running == 10


def test_with_long_jobs_nothing_is_claimed_that_cannot_start_at_once(clock: Clock) -> None:
    """Another process may have a free slot for it."""
    tenants = SimulatedTenants(10, clock)
    tenants.add("busy", 1.0, MANY)
    busy(tenants, clock, 100, SLOW)
    tenants.add("other", 1.0, 5)
    assert tenants.claim("other") == 0
    assert tenants.slots.use.held == tenants.slots.use.running == 10


def test_a_suspect_of_any_tenant_keeps_all_from_claiming_ahead(clock: Clock) -> None:
    tenants = SimulatedTenants(10, clock)
    plain = tenants.add("plain", 1.0, MANY)
    other = tenants.add("other", 1.0, 0)
    busy(tenants, clock, 500, QUICK)
    assert plain.waiting
    other.add(held_lease(lost=1))
    for _ in range(500):
        clock.now += QUICK
        plain.end(next(iter(plain.running)))
        tenants.settle()
    assert (len(plain.running), len(plain.waiting), len(other.running)) == (9, 0, 1)


def test_jobs_of_a_tenant_that_left_are_not_counted(clock: Clock) -> None:
    tenants = SimulatedTenants(10, clock)
    leaving = tenants.add("leaving", 1.0, MANY)
    tenants.add("staying", 1.0, MANY)
    tenants.settle()
    for _ in range(50):
        clock.now += SLOW
        tenants.round()
    running = list(leaving.running)
    before = Counter(tenants.started)["staying"]
    leaving.leave()
    del tenants.tenants["leaving"]
    tenants.settle()
    assert Counter(tenants.started)["staying"] == before + len(running)
    assert tenants.slots.use.running == 10
    leaving.end(running[0])  # a handler that could not be stopped ends after all
    assert tenants.slots.use.running == 10


def test_a_draining_tenant_leaves_the_claim_queue(clock: Clock) -> None:
    tenants = SimulatedTenants(2, clock)
    draining = tenants.add("draining", 100.0, MANY)
    tenants.add("other", 1.0, MANY)
    tenants.claim("other")
    tenants.start_all()
    assert draining.grant(draining.room()) == 0
    draining.give_back()
    tenants.end_one()
    assert tenants.claim("other") == 1


@pytest.mark.requirement("P3")
def test_jobs_that_wait_too_long_are_given_back_and_free_room(clock: Clock) -> None:
    tenants = SimulatedTenants(4, clock)
    share = tenants.add("a", 1.0, 0)
    for claimed_at in (0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 2.0):
        share.add(held_lease(claimed_at=claimed_at))
    tenants.start_all()
    clock.now = 2.5
    assert [each.claimed_at for each in share.give_back_late()] == [1.0]
    assert len(share.waiting) == 2
    assert (tenants.slots.use.running, tenants.slots.use.held) == (4, 6)


@pytest.mark.requirement("P3")
def test_a_first_job_that_waits_while_slots_become_free_is_not_given_back(clock: Clock) -> None:
    """It would be claimed again at once, and again."""
    tenants = SimulatedTenants(4, clock)
    busy_one, light = tenants.add("busy", 1.0, 0), tenants.add("light", 1.0, 0)
    for _ in range(204):
        busy_one.add(held_lease())
    for _ in range(200):
        tenants.start_all()
        clock.now += 0.001
        busy_one.end(next(iter(busy_one.running)))
    tenants.start_all()
    light.add(held_lease(claimed_at=clock.now - 60.0))
    assert light.give_back_late() == []
    busy_one.end(next(iter(busy_one.running)))
    assert tenants.slots.first_to_start() is light


@pytest.mark.requirement("P3")
def test_a_first_job_behind_long_jobs_is_given_back_to_a_host_that_may_be_free(
    clock: Clock,
) -> None:
    tenants = SimulatedTenants(4, clock)
    busy_one, light = tenants.add("busy", 1.0, 0), tenants.add("light", 1.0, 0)
    for _ in range(4):
        busy_one.add(held_lease())
    tenants.start_all()
    light.add(held_lease())
    clock.now = 60.0
    assert len(light.give_back_late()) == 1
    assert light.grant(1) == 0, "it would be claimed again at once"
    busy_one.end(next(iter(busy_one.running)))
    assert light.grant(1) == 1


def test_a_changed_weight_counts_from_now_on(clock: Clock) -> None:
    tenants = SimulatedTenants(10, clock)
    tenants.add("a", 1.0, MANY)
    tenants.add("b", 1.0, MANY)
    busy(tenants, clock, 100, SLOW)
    tenants.slots.set_share(tenants.tenants["a"], 4.0, None)
    before = len(tenants.started)
    for _ in range(500):
        clock.now += SLOW
        tenants.round()
    counts = Counter(tenants.started[before:])
    assert counts["a"] / counts["b"] == pytest.approx(4.0, rel=0.1)
