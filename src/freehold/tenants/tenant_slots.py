"""The slots of one tenant's worker, which it shares with the other tenants of its process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from freehold.worker.held_leases import HeldLease
from freehold.worker.slots import Slots

if TYPE_CHECKING:
    from freehold.tenants.shared_slots import SharedSlots


class TenantSlots(Slots):
    """Asks the shared slots before it claims or starts, and reports what it did."""

    def __init__(
        self, shared: SharedSlots, tenant: str, count: int, now: Callable[[], float]
    ) -> None:
        super().__init__(count, now)
        self.tenant = tenant
        #: Room that was granted to the claim under way.
        self.granted = 0
        #: The tenant had nothing to claim when it was last asked.
        self.was_idle = False
        #: The next job is the first one after an idle time, and starts before the current slice.
        self.next_is_first = True
        self._shared = shared
        self._claim: Callable[[], None] = _not_attached
        self._start: Callable[[], None] = _not_attached
        self._start_scheduled = False
        self._has_left = False

    def attach(self, claim: Callable[[], None], start: Callable[[], None]) -> None:
        self._claim, self._start = claim, start

    def on_room(self) -> None:
        self._claim()

    def on_slot(self) -> None:
        """Deferred, because starting inside the caller could recurse without end."""
        if not self._start_scheduled:
            self._start_scheduled = True
            self._shared.call_soon(self._start_waiting)

    def _start_waiting(self) -> None:
        self._start_scheduled = False
        self._start()

    @property
    def suspects(self) -> int:
        return self._pace.suspects

    @property
    def has_short_jobs(self) -> bool:
        """Its jobs have been ending so fast that it pays to claim some ahead."""
        return self._pace.ahead() > 0

    @property
    def is_empty(self) -> bool:
        """Holds no lease."""
        return not self.running and not self.waiting

    @property
    def can_start(self) -> bool:
        return bool(self.waiting) and len(self.running) < self.count

    def leave(self) -> None:
        self._has_left = True
        self._shared.leave(self)

    def grant(self, room: int) -> int:
        return 0 if self._has_left else self._shared.grant(self, room)

    def claim_ended(self, granted: int, claimed: int) -> None:
        self._shared.claim_ended(self, granted, claimed)

    def free(self) -> int:
        return max(0, min(super().free(), self._shared.free(self)))

    def add(self, lease: HeldLease) -> None:
        super().add(lease)
        if not self._has_left:
            self._shared.added(self, lease)

    def next(self) -> HeldLease | None:
        """The next lease to start, if a slot is free and this tenant starts next."""
        first = self._shared.first_to_start()
        if first is self:
            lease = super().next()
            self._shared.started(self)
            return lease
        if first is not None:
            first.on_slot()
        return None

    def end(self, lease: HeldLease) -> None:
        super().end(lease)
        if not self._has_left:
            self._shared.ended(self, lease)

    def give_back(self) -> list[HeldLease]:
        """The worker ends, so the tenant leaves the claim queue."""
        leases = super().give_back()
        if not self._has_left:
            self._shared.withdraw(self)
        return leases

    def give_back_late(self) -> list[HeldLease]:
        """A tenant that runs nothing waits for a slot, not for its own long jobs. While slots
        become free its jobs stay, because they would only be claimed again; behind long jobs of
        other tenants they would wait although another host may be free."""
        is_stuck = self.running or not self._shared.use.ahead()
        return super().give_back_late() if is_stuck else []

    def _give_back(self, given: list[HeldLease]) -> list[HeldLease]:
        super()._give_back(given)
        if not self._has_left:
            self._shared.given_back(self, given)
        return given


def _not_attached() -> None:
    """Until the worker has started."""
