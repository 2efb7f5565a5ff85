"""How many slots of a process are in use, by its tenants together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from freehold.tenants.prefetch_rate import PrefetchRate
from freehold.worker.held_leases import HeldLease

if TYPE_CHECKING:
    from freehold.tenants.tenant_slots import TenantSlots

#: With fewer slots than this, none is reserved.
RESERVE_FROM_SLOTS = 4
#: A claim that takes longer than this does not keep its room.
STALL_SECONDS = 1.0


class SlotUse:
    """The counts that the claim gate and the start order decide by."""

    def __init__(self, count: int, now: Callable[[], float]) -> None:
        self.count = count
        self.running = 0
        #: Leases of all tenants, running or waiting.
        self.held = 0
        #: Room granted to claims that have not ended yet.
        self.granted = 0
        self.tenants: dict[str, TenantSlots] = {}
        self._suspects = 0
        self._now = now
        self._rate = PrefetchRate(count, now)
        #: When each claim under way was granted its room.
        self._granted_at: dict[TenantSlots, float] = {}
        #: Awake tenants that hold nothing and claim nothing.
        self._empty: set[TenantSlots] = set()

    def ahead(self) -> int:
        """How many jobs to hold beside those that run: none while one of them may crash us."""
        return 0 if self._suspects else self._rate.ahead(self.running)

    def reserves_one(self, slots: TenantSlots) -> bool:
        """Whether a slot is reserved, because another awake tenant holds nothing."""
        return self.count >= RESERVE_FROM_SLOTS and len(self._empty) > (slots in self._empty)

    def without_reserved(self, slots: TenantSlots, room: int) -> int:
        """A tenant that holds nothing may use the reserved slot, and only that."""
        if room <= 0 or not self.reserves_one(slots):
            return room
        return max(room - 1, int(slots.is_empty))

    # -- changes -----------------------------------------------------------------------------

    def join(self, slots: TenantSlots) -> None:
        self.tenants[slots.tenant] = slots
        self.update_empty(slots)

    def leave(self, slots: TenantSlots) -> None:
        """The leases of the tenant are no longer counted."""
        del self.tenants[slots.tenant]
        self._empty.discard(slots)
        self._rate.record(self.running)
        self.running -= len(slots.running)
        self.held -= len(slots.running) + len(slots.waiting)
        self.granted -= slots.granted
        self._granted_at.pop(slots, None)
        self._suspects -= slots.suspects

    def grant(self, slots: TenantSlots, granted: int) -> None:
        slots.granted += granted
        self.granted += granted
        if granted:
            self._granted_at[slots] = self._now()
        self.update_empty(slots)

    def end_grant(self, slots: TenantSlots) -> None:
        self.granted -= slots.granted
        slots.granted = 0
        self._granted_at.pop(slots, None)
        self.update_empty(slots)

    def end_stalled_grants(self) -> None:
        """A tenant whose store hangs may have been granted all room, with what is claimed ahead. If
        its claim returns jobs after all, they wait."""
        begun = self._now() - STALL_SECONDS
        for slots in [slots for slots, at in self._granted_at.items() if at <= begun]:
            self.end_grant(slots)
            self._empty.discard(slots)  # its claim is under way: no slot is reserved for it

    def added(self, slots: TenantSlots, lease: HeldLease) -> None:
        self.held += 1
        self._suspects += lease.attempt.lost_attempts > 0
        if slots.granted:
            slots.granted -= 1
            self.granted -= 1
        self.update_empty(slots)

    def started(self) -> None:
        self._rate.record(self.running)
        self.running += 1

    def ended(self, slots: TenantSlots, lease: HeldLease) -> None:
        self._rate.record(self.running, ended=1)
        self.running -= 1
        self.removed(slots, lease)

    def removed(self, slots: TenantSlots, lease: HeldLease) -> None:
        self.held -= 1
        self._suspects -= lease.attempt.lost_attempts > 0
        self.update_empty(slots)

    def update_empty(self, slots: TenantSlots) -> None:
        if slots.is_empty and not slots.granted:
            self._empty.add(slots)
        else:
            self._empty.discard(slots)
