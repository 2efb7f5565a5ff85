"""Which tenant of a process claims next, and how many jobs.

A tenant with room for jobs is in the claim queue. The first one by weight is granted its share of
the room. A tenant that is claiming is not in the queue, and a claim that takes long loses its room
(`SlotUse.end_stalled_grants`), so a store that hangs does not delay the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from freehold.model.fairness import Fairness
from freehold.tenants.slot_use import SlotUse

if TYPE_CHECKING:
    from freehold.tenants.tenant_slots import TenantSlots

#: Calls a function in the next iteration of the event loop.
CallSoon: TypeAlias = Callable[[Callable[[], None]], object]


class ClaimGate:
    """Grants room to claims."""

    def __init__(self, use: SlotUse, call_soon: CallSoon) -> None:
        self._use = use
        self._call_soon = call_soon
        self.order = Fairness(())
        self._queue: dict[str, TenantSlots] = {}
        self._wake_scheduled = False

    def grant(self, slots: TenantSlots, wanted: int) -> int:
        """How many the tenant may claim now. With 0 it waits in the claim queue and is woken."""
        self._queue[slots.tenant] = slots
        granted = min(wanted, self._share(slots)) if wanted > 0 else 0
        if granted:
            del self._queue[slots.tenant]
        elif wanted <= 0 and slots.room() > 0:
            self.withdraw(slots)
        self._use.grant(slots, granted)
        self.schedule_wake()
        return granted

    def _share(self, slots: TenantSlots) -> int:
        room, claimants = self._room(slots), self._claimants()
        if room > 0 and claimants and self.order.first(claimants) == slots.tenant:
            return self.order.share(slots.tenant, claimants, room)
        return self._first_claim(slots)

    def _claimants(self) -> list[str]:
        """The tenants in the claim queue that are below their own limit."""
        return [name for name, slots in self._queue.items() if slots.room() > 0]

    def withdraw(self, slots: TenantSlots) -> None:
        """The tenant has nothing to claim now."""
        slots.was_idle = True
        self.remove(slots)

    def remove(self, slots: TenantSlots) -> None:
        if self._queue.pop(slots.tenant, None) is not None:
            self.schedule_wake()

    def claim_ended(self, slots: TenantSlots, granted: int, claimed: int) -> None:
        """Granted room that was not used goes to the other tenants."""
        slots.was_idle = claimed == 0
        self._use.end_grant(slots)
        self.order.served(slots.tenant, claimed, claimed or granted)
        self.schedule_wake()

    def free(self, slots: TenantSlots) -> int:
        """How many jobs of this tenant could start at once."""
        use = self._use
        granted_to_others = use.granted - slots.granted
        free = use.without_reserved(slots, use.count - use.held - granted_to_others)
        return max(free, int(slots.is_empty and use.ahead() > 0))

    def _room(self, slots: TenantSlots) -> int:
        use, ahead = self._use, self._use.ahead()
        room = use.without_reserved(slots, use.count + ahead - use.held - use.granted)
        # A small claim costs as much as a large one: while jobs wait, let the room grow first.
        can_wait = use.held > use.running and not slots.is_empty
        if room > 0 and not (can_wait and room * 4 < use.count + ahead):
            return room
        return use.without_reserved(slots, self._unused())

    def _unused(self) -> int:
        """Free slots that no waiting job can use, because its tenant is at its own limit."""
        unused = self._use.count - self._use.running - self._use.granted
        if unused <= 0 or any(slots.can_start for slots in self._use.tenants.values()):
            return 0
        return unused

    def _first_claim(self, slots: TenantSlots) -> int:
        """What a tenant that holds nothing may claim beyond the room: one job, or its share of all
        that may be held if its jobs are short. Otherwise a busy tenant among many would claim its
        jobs one by one."""
        ahead = self._use.ahead()
        if not slots.is_empty or slots.granted or not ahead:
            return 0
        if not slots.has_short_jobs:
            return 1
        return self.order.share(slots.tenant, self._use.tenants, self._use.count + ahead)

    def schedule_wake(self) -> None:
        """Wake the first claimant if there is room. Deferred, and once for all changes until then:
        finding the first among many tenants is too expensive for every job."""
        if self._queue and not self._wake_scheduled:
            self._wake_scheduled = True
            self._call_soon(self._wake_claimant)

    def _wake_claimant(self) -> None:
        self._wake_scheduled = False
        if claimants := self._claimants():
            first = self._queue[self.order.first(claimants)]
            if self._room(first) > 0:
                first.on_room()
