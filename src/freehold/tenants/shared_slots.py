"""The slots of one process, shared by its tenants: which tenant claims next, and which starts next.

    has room --> claim queue --granted--> claiming --added--> waiting --slice--> running

Both orders follow the weights (see `model/fairness`). A tenant with room for jobs is in the claim
queue; the first one is granted its share of the free slots. A tenant that is claiming is not in the
queue, so a store that hangs does not delay the others. Jobs that were claimed ahead wait, and the
first tenant with waiting jobs starts a slice of them: several if they are short. Slots that one
tenant cannot use go to the others.

Three rules keep the latency of a tenant's first job low. It starts before the current slice. A
tenant that holds nothing may claim beyond the free room while slots become free within a tenth of a
second. And while some awake tenant holds nothing, the last slot is reserved for tenants that run
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from freehold.model.fairness import Fairness
from freehold.tenants.prefetch_rate import PrefetchRate
from freehold.worker.held_leases import HeldLease
from freehold.worker.slots import Slots

#: A slice is this part of what is claimed ahead: five milliseconds of work. Jobs that start
#: together end together, and their ends are written together.
_SLICE = 0.05
#: With fewer slots than this, none is reserved.
RESERVE_FROM_SLOTS = 4
#: Calls a function in the next iteration of the event loop.
CallSoon: TypeAlias = Callable[[Callable[[], None]], object]


class SharedSlots:
    """All slots of a process. Belongs to its event loop."""

    def __init__(self, count: int, now: Callable[[], float], call_soon: CallSoon) -> None:
        self.count = count
        self.call_soon = call_soon
        self.running = 0
        #: Leases of all tenants, running or waiting.
        self.held = 0
        self._now = now
        #: Room granted to claims that have not ended yet.
        self._granted = 0
        self._suspects = 0
        self._rate = PrefetchRate(count, now)
        self._tenants: dict[str, TenantSlots] = {}
        self._claim_queue: dict[str, TenantSlots] = {}
        self._claims = Fairness(())
        self._starts = Fairness(())
        #: The tenant that starts jobs now, and how many more it may start.
        self._slice_tenant: TenantSlots | None = None
        self._slice_left = 0
        #: Tenants whose first job waits, in the order of their claims.
        self._first_jobs: dict[TenantSlots, None] = {}
        #: Awake tenants that hold nothing and claim nothing.
        self._empty: set[TenantSlots] = set()
        self._wake_scheduled = False

    def join(self, tenant: str, weight: float, max_slots: int | None) -> TenantSlots:
        slots = TenantSlots(self, tenant, min(self.count, max_slots or self.count), self._now)
        self._tenants[tenant] = slots
        self._claims.join(tenant, weight)
        self._starts.join(tenant, weight)
        self._empty.add(slots)
        return slots

    def set_share(self, slots: TenantSlots, weight: float, max_slots: int | None) -> None:
        """Applies to later claims and starts; running jobs continue."""
        slots.count = min(self.count, max_slots or self.count)
        self._claims.set_weight(slots.tenant, weight)
        self._starts.set_weight(slots.tenant, weight)

    def leave(self, slots: TenantSlots) -> None:
        """The leases of the tenant are no longer counted."""
        if self._tenants.get(slots.tenant) is slots:
            del self._tenants[slots.tenant]
            self._claim_queue.pop(slots.tenant, None)
            self._empty.discard(slots)
            self._first_jobs.pop(slots, None)
            if self._slice_tenant is slots:
                self._slice_tenant = None
            self._rate.record(self.running)
            self.running -= len(slots.running)
            self.held -= len(slots.running) + len(slots.waiting)
            self._granted -= slots.granted
            self._suspects -= slots.suspects
            self._schedule_wake()
            self.offer_slot()

    # -- claiming ----------------------------------------------------------------------------

    def grant(self, slots: TenantSlots, wanted: int) -> int:
        """How many the tenant may claim now. With 0 it waits in the claim queue and is woken."""
        granted = self._grant_of(slots, wanted)
        if granted:
            self._claim_queue.pop(slots.tenant, None)
        elif wanted <= 0 and slots.room() > 0:
            self.withdraw(slots)
        slots.granted += granted
        self._granted += granted
        self._update_empty(slots)
        self._schedule_wake()
        return granted

    def _grant_of(self, slots: TenantSlots, wanted: int) -> int:
        self._claim_queue[slots.tenant] = slots
        if wanted <= 0:
            return 0
        self._limit_credit(slots)
        room = self._room(slots)
        if (
            room > 0
            and (claimants := self._claimants())
            and self._claims.first(claimants) == slots.tenant
        ):
            return min(wanted, self._claims.share(slots.tenant, claimants, room))
        return min(wanted, self._first_claim(slots))

    def _limit_credit(self, slots: TenantSlots) -> None:
        """An idle tenant earns no credit. A tenant that was claiming may catch up by at most one
        full prefetch, so that a slow store builds up no claim on the slots of other tenants."""
        behind = 0 if slots.was_idle else self.count + self._ahead()
        slots.next_is_first |= slots.was_idle
        slots.was_idle = False
        for order in (self._claims, self._starts):
            order.come_back(slots.tenant, behind)

    def _claimants(self) -> list[str]:
        """The tenants in the claim queue that are below their own limit."""
        return [name for name, slots in self._claim_queue.items() if slots.room() > 0]

    def withdraw(self, slots: TenantSlots) -> None:
        """The tenant has nothing to claim now."""
        slots.was_idle = True
        if self._claim_queue.pop(slots.tenant, None) is not None:
            self._schedule_wake()

    def claim_ended(self, slots: TenantSlots, granted: int, claimed: int) -> None:
        """Granted room that was not used goes to the other tenants."""
        if self._tenants.get(slots.tenant) is slots:
            self._granted -= slots.granted
            slots.granted = 0
            slots.was_idle = claimed == 0
            self._update_empty(slots)
            self._claims.served(slots.tenant, claimed, claimed or granted)
            self._schedule_wake()

    def free(self, slots: TenantSlots) -> int:
        """How many jobs of this tenant could start at once."""
        granted_to_others = self._granted - slots.granted
        free = self._without_reserved(slots, self.count - self.held - granted_to_others)
        return max(free, int(slots.is_empty and self._ahead() > 0))

    def _room(self, slots: TenantSlots) -> int:
        ahead = self._ahead()
        room = self._without_reserved(slots, self.count + ahead - self.held - self._granted)
        # A small claim costs as much as a large one: while jobs wait, let the room grow first.
        can_wait = self.held > self.running and not slots.is_empty
        if room > 0 and not (can_wait and room * 4 < self.count + ahead):
            return room
        return self._without_reserved(slots, self._unused())

    def _unused(self) -> int:
        """Free slots that no waiting job can use, because its tenant is at its own limit."""
        unused = self.count - self.running - self._granted
        if unused <= 0 or any(slots.can_start for slots in self._tenants.values()):
            return 0
        return unused

    def _first_claim(self, slots: TenantSlots) -> int:
        """What a tenant that holds nothing may claim beyond the room: one job, or its share of all
        that may be held if its jobs are short. Otherwise a busy tenant among many would claim its
        jobs one by one."""
        ahead = self._ahead()
        if not slots.is_empty or slots.granted or not ahead:
            return 0
        if not slots.has_short_jobs:
            return 1
        return self._claims.share(slots.tenant, self._tenants, self.count + ahead)

    def _ahead(self) -> int:
        return 0 if self._suspects else self._rate.ahead(self.running)

    def _schedule_wake(self) -> None:
        """Wake the first claimant if there is room. Deferred, and once for all changes until then:
        finding the first among many tenants is too expensive for every job."""
        if self._claim_queue and not self._wake_scheduled:
            self._wake_scheduled = True
            self.call_soon(self._wake_claimant)

    def _wake_claimant(self) -> None:
        self._wake_scheduled = False
        if claimants := self._claimants():
            first = self._claim_queue[self._claims.first(claimants)]
            if self._room(first) > 0:
                first.on_room()

    # -- starting ----------------------------------------------------------------------------

    def first_to_start(self) -> TenantSlots | None:
        """The tenant that starts the next job: with a first job, in its slice, or next by
        weight."""
        if self.running >= self.count:
            return None
        for first in self._first_jobs:
            if self._may_start(first):
                return first
        current = self._slice_tenant
        if current is not None and self._slice_left > 0 and self._may_start(current):
            return current
        ready = {name: slots for name, slots in self._tenants.items() if self._may_start(slots)}
        if not ready:
            return None
        name = self._starts.first(ready)
        slices = int(self._ahead() * _SLICE) * len(ready)
        self._slice_tenant = ready[name]
        self._slice_left = self._starts.share(name, ready, slices)
        return self._slice_tenant

    def _may_start(self, slots: TenantSlots) -> bool:
        """Whether the tenant may use a free slot."""
        if not slots.can_start:
            return False
        return not slots.running or self.count - self.running > 1 or not self._reserves_one(slots)

    def _without_reserved(self, slots: TenantSlots, room: int) -> int:
        """A tenant that holds nothing may use the reserved slot, and only that."""
        if room <= 0 or not self._reserves_one(slots):
            return room
        return max(room - 1, int(slots.is_empty))

    def _reserves_one(self, slots: TenantSlots) -> bool:
        """Whether a slot is reserved, because another awake tenant holds nothing."""
        return self.count >= RESERVE_FROM_SLOTS and len(self._empty) > (slots in self._empty)

    def offer_slot(self) -> None:
        """A slot may be free: notify the tenant that starts next."""
        first = self.first_to_start()
        if first is not None:
            first.on_slot()

    # -- changes reported by the tenants -----------------------------------------------------

    def added(self, slots: TenantSlots, lease: HeldLease) -> None:
        self.held += 1
        self._suspects += lease.attempt.lost_attempts > 0
        if slots.granted:
            slots.granted -= 1
            self._granted -= 1
        if slots.next_is_first:
            slots.next_is_first = False
            self._first_jobs[slots] = None
        self._update_empty(slots)

    def started(self, slots: TenantSlots) -> None:
        self._rate.record(self.running)
        self.running += 1
        if slots in self._first_jobs:
            del self._first_jobs[slots]
        else:
            self._slice_left -= 1
        self._starts.served(slots.tenant, 1, 1)

    def ended(self, slots: TenantSlots, lease: HeldLease) -> None:
        self._rate.record(self.running, ended=1)
        self.running -= 1
        self._removed(slots, lease)
        self.offer_slot()

    def given_back(self, slots: TenantSlots, leases: list[HeldLease]) -> None:
        if not slots.waiting:
            self._first_jobs.pop(slots, None)
        for lease in leases:
            self._removed(slots, lease)

    def _removed(self, slots: TenantSlots, lease: HeldLease) -> None:
        self.held -= 1
        self._suspects -= lease.attempt.lost_attempts > 0
        self._update_empty(slots)
        self._schedule_wake()

    def _update_empty(self, slots: TenantSlots) -> None:
        if slots.is_empty and not slots.granted:
            self._empty.add(slots)
        else:
            self._empty.discard(slots)


class TenantSlots(Slots):
    """The slots of one tenant's worker, shared with other tenants."""

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
        return self._suspects

    @property
    def has_short_jobs(self) -> bool:
        """Its jobs have been ending so fast that it pays to claim some ahead."""
        return self._ahead() > 0

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
        """A tenant that runs nothing waits for a slot, not for its own long jobs. Its waiting jobs
        stay, because they would only be claimed again."""
        return super().give_back_late() if self.running else []

    def _give_back(self, given: list[HeldLease]) -> list[HeldLease]:
        super()._give_back(given)
        if not self._has_left:
            self._shared.given_back(self, given)
        return given


def _not_attached() -> None:
    """Until the worker has started."""
