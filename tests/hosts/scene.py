"""Shares of a capacity without workers: jobs that are claimed, started and ended by hand."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import count

from freehold.model.job import Attempt
from freehold.tenants.shared_slots import SharedSlots, TenantSlots
from freehold.worker.held_leases import HeldLease

_tokens = count(1)


class Clock:
    """Stands still until a test moves it."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def held(lost: int = 0, taken_at: float = 0.0) -> HeldLease:
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
        lost=lost,
        priority=0,
        target=None,
        timeout_seconds=None,
        policy_json=None,
    )
    return HeldLease(attempt, 1e9, taken_at=taken_at)


class Tenants:
    """Claimers that ask whenever they could, and stores that have what they are asked for."""

    def __init__(self, slots: int, now: Callable[[], float], seed: int = 1) -> None:
        self.capacity = SharedSlots(slots, now, lambda call: call())
        self.shares: dict[str, TenantSlots] = {}
        self.backlog: Counter[str] = Counter()
        self.started: list[str] = []
        self.claims: list[str] = []
        self._random = random.Random(seed)

    def add(
        self, name: str, weight: float, backlog: int, max_slots: int | None = None
    ) -> TenantSlots:
        share = self.shares[name] = self.capacity.join(name, weight, max_slots)
        self.backlog[name] = backlog
        return share

    def claim(self, name: str) -> int:
        """All the way: ask, be granted, come back with as many as there are."""
        share = self.shares[name]
        if not self.backlog[name]:
            share.grant(0)
            return 0
        granted = share.grant(share.room())
        if granted:
            self.bring(name, granted)
        return granted

    def bring(self, name: str, granted: int) -> None:
        share = self.shares[name]
        got = min(granted, self.backlog[name])
        self.backlog[name] -= got
        self.claims.append(name)
        for _ in range(got):
            share.take(held())
        share.settle(granted, got)

    def start_all(self) -> None:
        while (first := self.capacity.first_to_start()) is not None:
            assert first.next() is not None
            self.started.append(first.tenant)

    def end_one(self) -> None:
        running = [(share, each) for share in self.shares.values() for each in share.running]
        share, each = self._random.choice(running)
        share.end(each)

    def round(self, away: frozenset[str] = frozenset()) -> None:
        """A slot is freed; whoever is here asks, in any order."""
        self.end_one()
        self.settle(away)

    def settle(self, away: frozenset[str] = frozenset()) -> None:
        while True:
            names = [name for name in self.shares if name not in away]
            self._random.shuffle(names)
            if not sum(self.claim(name) for name in names):
                break
        self.start_all()
