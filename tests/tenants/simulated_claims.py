"""Shared slots without workers: the tests claim, start and end jobs themselves."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import count

from freehold.model.job import Attempt
from freehold.tenants.shared_slots import SharedSlots
from freehold.tenants.tenant_slots import TenantSlots
from freehold.worker.held_leases import HeldLease

_tokens = count(1)


class Clock:
    """Advances only when a test sets it."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def held_lease(lost: int = 0, claimed_at: float = 0.0) -> HeldLease:
    number = next(_tokens)
    attempt = Attempt(
        job_id=number,
        owner="w1",
        token=number,
        task="t",
        queue="default",
        args="{}",
        number=1,
        max_attempts=1,
        lost_attempts=lost,
        priority=0,
        target=None,
        timeout_seconds=None,
        policy_json=None,
    )
    return HeldLease(attempt, 1e9, claimed_at=claimed_at)


class SimulatedTenants:
    """Tenants that claim whenever they can, from stores with a given backlog."""

    def __init__(self, count: int, now: Callable[[], float], seed: int = 1) -> None:
        self.slots = SharedSlots(count, now, lambda call: call())
        self.tenants: dict[str, TenantSlots] = {}
        self.backlog: Counter[str] = Counter()
        self.started: list[str] = []
        self.claims: list[str] = []
        self._random = random.Random(seed)

    def add(
        self, name: str, weight: float, backlog: int, max_slots: int | None = None
    ) -> TenantSlots:
        slots = self.tenants[name] = self.slots.join(name, weight, max_slots)
        self.backlog[name] = backlog
        return slots

    def claim(self, name: str) -> int:
        """A whole claim: request a grant, and claim as much as the backlog has."""
        slots = self.tenants[name]
        if not self.backlog[name]:
            slots.grant(0)
            return 0
        granted = slots.grant(slots.room())
        if granted:
            self.finish_claim(name, granted)
        return granted

    def finish_claim(self, name: str, granted: int) -> None:
        slots = self.tenants[name]
        claimed = min(granted, self.backlog[name])
        self.backlog[name] -= claimed
        self.claims.append(name)
        for _ in range(claimed):
            slots.add(held_lease())
        slots.claim_ended(granted, claimed)

    def start_all(self) -> None:
        while (first := self.slots.first_to_start()) is not None:
            assert first.next() is not None
            self.started.append(first.tenant)

    def end_one(self) -> None:
        running = [(slots, each) for slots in self.tenants.values() for each in slots.running]
        slots, each = self._random.choice(running)
        slots.end(each)

    def round(self, away: frozenset[str] = frozenset()) -> None:
        """End one job; then all tenants but ``away`` claim, in random order."""
        self.end_one()
        self.settle(away)

    def settle(self, away: frozenset[str] = frozenset()) -> None:
        while True:
            names = [name for name in self.tenants if name not in away]
            self._random.shuffle(names)
            if not sum(self.claim(name) for name in names):
                break
        self.start_all()
