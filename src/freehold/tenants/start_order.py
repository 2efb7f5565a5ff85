"""Which tenant of a process starts its next waiting job.

The first tenant by weight starts a slice of its jobs: several if they are short. The first job of a
tenant after an idle time starts before the current slice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from freehold.model.fairness import Fairness
from freehold.tenants.slot_use import SlotUse

if TYPE_CHECKING:
    from freehold.tenants.tenant_slots import TenantSlots

#: A slice is this part of what is claimed ahead: five milliseconds of work. Jobs that start
#: together end together, and their ends are written together.
_SLICE = 0.05


class StartOrder:
    """Hands free slots to tenants with waiting jobs."""

    def __init__(self, use: SlotUse) -> None:
        self._use = use
        self.order = Fairness(())
        #: The tenant that starts jobs now, and how many more it may start.
        self._slice_tenant: TenantSlots | None = None
        self._slice_left = 0
        #: Tenants whose first job waits, in the order of their claims.
        self._first_jobs: dict[TenantSlots, None] = {}

    def first(self) -> TenantSlots | None:
        """The tenant that starts the next job: with a first job, in its slice, or next by
        weight."""
        if self._use.running >= self._use.count:
            return None
        for first in self._first_jobs:
            if self._may_start(first):
                return first
        current = self._slice_tenant
        if current is not None and self._slice_left > 0 and self._may_start(current):
            return current
        tenants = self._use.tenants.items()
        ready = {name: slots for name, slots in tenants if self._may_start(slots)}
        if not ready:
            return None
        name = self.order.first(ready)
        slices = int(self._use.ahead() * _SLICE) * len(ready)
        self._slice_tenant = ready[name]
        self._slice_left = self.order.share(name, ready, slices)
        return self._slice_tenant

    def _may_start(self, slots: TenantSlots) -> bool:
        """Whether the tenant may use a free slot."""
        if not slots.can_start:
            return False
        free = self._use.count - self._use.running
        return not slots.running or free > 1 or not self._use.reserves_one(slots)

    def offer(self) -> None:
        """A slot may be free: notify the tenant that starts next."""
        first = self.first()
        if first is not None:
            first.on_slot()

    def added(self, slots: TenantSlots) -> None:
        if slots.next_is_first:
            slots.next_is_first = False
            self._first_jobs[slots] = None

    def started(self, slots: TenantSlots) -> None:
        if slots in self._first_jobs:
            del self._first_jobs[slots]
        else:
            self._slice_left -= 1
        self.order.served(slots.tenant, 1, 1)

    def given_back(self, slots: TenantSlots) -> None:
        if not slots.waiting:
            self._first_jobs.pop(slots, None)

    def leave(self, slots: TenantSlots) -> None:
        self._first_jobs.pop(slots, None)
        if self._slice_tenant is slots:
            self._slice_tenant = None
