"""The slots of one process, shared by its tenants: which tenant claims next, and which starts next.

    has room --> claim queue --granted--> claiming --added--> waiting --slice--> running

Both orders follow the weights (see `model/fairness`): `claim_gate` has the first, `start_order` the
second, and `slot_use` the counts that both decide by. Jobs that were claimed ahead wait. Slots that
one tenant cannot use go to the others.

Three rules keep the latency of a tenant's first job low. It starts before the current slice. A
tenant that holds nothing may claim beyond the free room while slots become free within a tenth of a
second. And while some awake tenant holds nothing, the last slot is reserved for tenants that run
nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from freehold.telemetry import Telemetry
from freehold.tenants.claim_gate import CallSoon, ClaimGate
from freehold.tenants.slot_use import SlotUse
from freehold.tenants.start_order import StartOrder
from freehold.tenants.tenant_slots import TenantSlots
from freehold.worker.held_leases import HeldLease


class SharedSlots:
    """All slots of a process. Belongs to its event loop."""

    def __init__(self, count: int, now: Callable[[], float], call_soon: CallSoon) -> None:
        self.count = count
        self.call_soon = call_soon
        self._now = now
        self.use = SlotUse(count, now)
        self._gate = ClaimGate(self.use, call_soon)
        self._starts = StartOrder(self.use)

    def show_in(self, telemetry: Telemetry) -> None:
        telemetry.watch("slots", lambda: self.count)
        telemetry.watch("slots_running", lambda: self.use.running)
        telemetry.watch("slots_waiting", lambda: self.use.held - self.use.running)

    def join(self, tenant: str, weight: float, max_slots: int | None) -> TenantSlots:
        slots = TenantSlots(self, tenant, min(self.count, max_slots or self.count), self._now)
        self.use.join(slots)
        self._gate.order.join(tenant, weight)
        self._starts.order.join(tenant, weight)
        return slots

    def set_share(self, slots: TenantSlots, weight: float, max_slots: int | None) -> None:
        """Applies to later claims and starts; running jobs continue."""
        slots.count = min(self.count, max_slots or self.count)
        self._gate.order.weights[slots.tenant] = weight
        self._starts.order.weights[slots.tenant] = weight

    def leave(self, slots: TenantSlots) -> None:
        if self._is_member(slots):
            self._starts.leave(slots)
            self.use.leave(slots)
            self._gate.remove(slots)
            self._gate.schedule_wake()
            self._starts.offer()

    def _is_member(self, slots: TenantSlots) -> bool:
        """A tenant that has left and joined again has other slots."""
        return self.use.tenants.get(slots.tenant) is slots

    # -- claiming ----------------------------------------------------------------------------

    def grant(self, slots: TenantSlots, wanted: int) -> int:
        """How many the tenant may claim now. With 0 it waits in the claim queue and is woken."""
        if wanted > 0:
            self._limit_credit(slots)
        return self._gate.grant(slots, wanted)

    def _limit_credit(self, slots: TenantSlots) -> None:
        """An idle tenant earns no credit. A tenant that was claiming may catch up by at most one
        full prefetch, so that a slow store builds up no claim on the slots of other tenants."""
        behind = 0 if slots.was_idle else self.count + self.use.ahead()
        slots.next_is_first |= slots.was_idle
        slots.was_idle = False
        for order in (self._gate.order, self._starts.order):
            order.come_back(slots.tenant, behind)

    def withdraw(self, slots: TenantSlots) -> None:
        """The tenant has nothing to claim now."""
        self._gate.withdraw(slots)

    def claim_ended(self, slots: TenantSlots, granted: int, claimed: int) -> None:
        """Granted room that was not used goes to the other tenants."""
        if self._is_member(slots):
            self._gate.claim_ended(slots, granted, claimed)

    def end_stalled_grants(self) -> None:
        """Called from time to time: the room of a claim that hangs goes to the other tenants."""
        self.use.end_stalled_grants()
        self._gate.schedule_wake()

    def free(self, slots: TenantSlots) -> int:
        """How many jobs of this tenant could start at once."""
        return self._gate.free(slots)

    # -- starting ----------------------------------------------------------------------------

    def first_to_start(self) -> TenantSlots | None:
        """The tenant that starts the next job."""
        return self._starts.first()

    def added(self, slots: TenantSlots, lease: HeldLease) -> None:
        self.use.added(slots, lease)
        self._starts.added(slots)

    def started(self, slots: TenantSlots) -> None:
        self.use.started()
        self._starts.started(slots)

    def ended(self, slots: TenantSlots, lease: HeldLease) -> None:
        self.use.ended(slots, lease)
        self._gate.schedule_wake()
        self._starts.offer()

    def given_back(self, slots: TenantSlots, leases: list[HeldLease]) -> None:
        self._starts.given_back(slots)
        for lease in leases:
            self.use.removed(slots, lease)
            self._gate.schedule_wake()
