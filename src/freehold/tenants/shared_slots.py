"""The slots of one process, shared by its tenants: who claims next, and who starts next.

    room of its own --> the gate --granted--> away claiming --taken--> waiting --turn--> running

Both turns go by weight (see `model/fairness`). A tenant that could use room stands at the gate,
and the first of those who stand there is let through, with its share of what is free. One that
is away claiming does not stand there: if its store hangs, the others' turns go on. What was
claimed ahead waits in hand, and the first of those who have something waiting starts, several at
a turn where they are short. What one cannot use is the others'.

Nobody's first job waits for a busy tenant's: it starts before whoever has the turn. Whoever has
nothing in hand may claim beyond the room there is, while slots turn over within a tenth of a
second. And as long as somebody is awake who has nothing in hand, the last slot is kept for one who
runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from freehold.model.fairness import Fairness
from freehold.tenants.prefetch_rate import PrefetchRate
from freehold.worker.held_leases import HeldLease
from freehold.worker.slots import Slots

#: A turn to start is this part of what is claimed ahead: five thousandths of a second's work. Jobs
#: that start together end together, and are written together.
_SLICE = 0.05
#: With fewer slots than this, none is kept.
KEEP_FROM = 4
#: Calls something in a moment.
DueSoon: TypeAlias = Callable[[Callable[[], None]], object]


class SharedSlots:
    """All slots of a process. Belongs to its event loop."""

    def __init__(self, slots: int, now: Callable[[], float], soon: DueSoon) -> None:
        self.slots = slots
        self.soon = soon
        self.running = 0
        self.in_hand = 0
        self._now = now
        self._promised = 0
        self._suspects = 0
        self._turnover = PrefetchRate(slots, now)
        self._shares: dict[str, TenantSlots] = {}
        self._gate: dict[str, TenantSlots] = {}
        self._claims = Fairness(())
        self._starts = Fairness(())
        #: Whose turn it is to start, and how many more.
        self._turn: TenantSlots | None = None
        self._turn_left = 0
        #: Who had nothing to do before, and waits for nobody's turn: in the order of their coming.
        self._firsts: dict[TenantSlots, None] = {}
        #: Those who are awake, and neither have anything nor are about to.
        self._away: set[TenantSlots] = set()
        self._calls = False

    def join(self, tenant: str, weight: float, max_slots: int | None) -> TenantSlots:
        share = TenantSlots(self, tenant, min(self.slots, max_slots or self.slots), self._now)
        self._shares[tenant] = share
        self._claims.join(tenant, weight)
        self._starts.join(tenant, weight)
        self._away.add(share)
        return share

    def change(self, share: TenantSlots, weight: float, max_slots: int | None) -> None:
        """From now on; what runs goes on."""
        share.count = min(self.slots, max_slots or self.slots)
        self._claims.weigh(share.tenant, weight)
        self._starts.weigh(share.tenant, weight)

    def leave(self, share: TenantSlots) -> None:
        """What it has in hand is not counted any more."""
        if self._shares.get(share.tenant) is share:
            del self._shares[share.tenant]
            self._gate.pop(share.tenant, None)
            self._away.discard(share)
            self._firsts.pop(share, None)
            if self._turn is share:
                self._turn = None
            self._turnover.changes(self.running)
            self.running -= len(share.running)
            self.in_hand -= len(share.running) + len(share.waiting)
            self._promised -= share.promised
            self._suspects -= share.suspects
            self._call()
            self.pass_on()

    # -- claiming ----------------------------------------------------------------------------

    def grant(self, share: TenantSlots, wanted: int) -> int:
        """How many it may claim now. With none it stands at the gate, and is called."""
        granted = self._granted(share, wanted)
        if granted:
            self._gate.pop(share.tenant, None)
        elif wanted <= 0 and share.room() > 0:
            self.withdraw(share)
        share.promised += granted
        self._promised += granted
        self._look_at(share)
        self._call()
        return granted

    def _granted(self, share: TenantSlots, wanted: int) -> int:
        self._gate[share.tenant] = share
        if wanted <= 0:
            return 0
        self._come_back(share)
        room = self._room(share)
        if (
            room > 0
            and (standing := self._standing())
            and self._claims.first(standing) == share.tenant
        ):
            return min(wanted, self._claims.share(share.tenant, standing, room))
        return min(wanted, self._first_hand(share))

    def _come_back(self, share: TenantSlots) -> None:
        """Who had nothing to do has saved up nothing. Who was away claiming catches up, but no
        more than a hand full: if its store was slow, that is nobody else's fault."""
        behind = 0 if share.had_nothing else self.slots + self._ahead()
        share.comes_first |= share.had_nothing
        share.had_nothing = False
        for turns in (self._claims, self._starts):
            turns.come_back(share.tenant, behind)

    def _standing(self) -> list[str]:
        """Who is at the gate and could use a slot: not those who have all that they may."""
        return [name for name, share in self._gate.items() if share.room() > 0]

    def withdraw(self, share: TenantSlots) -> None:
        """It wants nothing now."""
        share.had_nothing = True
        if self._gate.pop(share.tenant, None) is not None:
            self._call()

    def settle(self, share: TenantSlots, asked: int, got: int) -> None:
        """It is back. What was promised and not taken is the others'."""
        if self._shares.get(share.tenant) is share:
            self._promised -= share.promised
            share.promised = 0
            share.had_nothing = got == 0
            self._look_at(share)
            self._claims.served(share.tenant, got, got or asked)
            self._call()

    def free(self, share: TenantSlots) -> int:
        """How many of this one's jobs could start at once."""
        others = self._promised - share.promised
        free = self._without_kept(share, self.slots - self.in_hand - others)
        return max(free, int(share.is_empty and self._ahead() > 0))

    def _room(self, share: TenantSlots) -> int:
        ahead = self._ahead()
        room = self._without_kept(share, self.slots + ahead - self.in_hand - self._promised)
        # Small claims cost as much as large ones: with work in hand, wait until it is worth it.
        waits = self.in_hand > self.running and not share.is_empty
        if room > 0 and not (waits and room * 4 < self.slots + ahead):
            return room
        return self._without_kept(share, self._unused())

    def _unused(self) -> int:
        """Slots that nobody can use of what is in hand: it waits for slots of its own tenant."""
        unused = self.slots - self.running - self._promised
        if unused <= 0 or any(share.is_ready for share in self._shares.values()):
            return 0
        return unused

    def _first_hand(self, share: TenantSlots) -> int:
        """What one that has nothing in hand may claim beyond the room: one; or, if its jobs are
        known to be short, its share of all that may be in hand. Else a busy tenant among many
        would claim its jobs one by one."""
        ahead = self._ahead()
        if not share.is_empty or share.promised or not ahead:
            return 0
        if not share.is_quick:
            return 1
        return self._claims.share(share.tenant, self._shares, self.slots + ahead)

    def _ahead(self) -> int:
        return 0 if self._suspects else self._turnover.ahead(self.running)

    def _call(self) -> None:
        """Somebody at the gate may come, if there is room. Soon, and once for all that makes room
        until then: who is first among many is not asked with every job."""
        if self._gate and not self._calls:
            self._calls = True
            self.soon(self._call_first)

    def _call_first(self) -> None:
        self._calls = False
        if standing := self._standing():
            first = self._gate[self._claims.first(standing)]
            if self._room(first) > 0:
                first.on_room()

    # -- starting ----------------------------------------------------------------------------

    def first_to_start(self) -> TenantSlots | None:
        """Who has the turn goes on with it while it can."""
        if self.running >= self.slots:
            return None
        for first in self._firsts:
            if self._may_start(first):
                return first
        if self._turn is not None and self._turn_left > 0 and self._may_start(self._turn):
            return self._turn
        ready = {name: share for name, share in self._shares.items() if self._may_start(share)}
        if not ready:
            return None
        name = self._starts.first(ready)
        turns = int(self._ahead() * _SLICE) * len(ready)
        self._turn, self._turn_left = ready[name], self._starts.share(name, ready, turns)
        return self._turn

    def _may_start(self, share: TenantSlots) -> bool:
        """Whether it could, while a slot is free."""
        if not share.is_ready:
            return False
        return not share.running or self.slots - self.running > 1 or not self._keeps_one(share)

    def _without_kept(self, share: TenantSlots, room: int) -> int:
        """Who has nothing in hand may have the kept slot, and that only."""
        if room <= 0 or not self._keeps_one(share):
            return room
        return max(room - 1, int(share.is_empty))

    def _keeps_one(self, share: TenantSlots) -> bool:
        """While somebody else might come."""
        return self.slots >= KEEP_FROM and len(self._away) > (share in self._away)

    def pass_on(self) -> None:
        """A slot may be free: whose turn it is gets to know."""
        first = self.first_to_start()
        if first is not None:
            first.on_turn()

    # -- what shares tell --------------------------------------------------------------------

    def taken(self, share: TenantSlots, held: HeldLease) -> None:
        self.in_hand += 1
        self._suspects += held.attempt.lost > 0
        if share.promised:
            share.promised -= 1
            self._promised -= 1
        if share.comes_first:
            share.comes_first = False
            self._firsts[share] = None
        self._look_at(share)

    def started(self, share: TenantSlots) -> None:
        self._turnover.changes(self.running)
        self.running += 1
        if share in self._firsts:
            del self._firsts[share]
        else:
            self._turn_left -= 1
        self._starts.served(share.tenant, 1, 1)

    def ended(self, share: TenantSlots, held: HeldLease) -> None:
        self._turnover.changes(self.running, ended=1)
        self.running -= 1
        self._gone(share, held)
        self.pass_on()

    def given_back(self, share: TenantSlots, given: list[HeldLease]) -> None:
        if not share.waiting:
            self._firsts.pop(share, None)
        for held in given:
            self._gone(share, held)

    def _gone(self, share: TenantSlots, held: HeldLease) -> None:
        self.in_hand -= 1
        self._suspects -= held.attempt.lost > 0
        self._look_at(share)
        self._call()

    def _look_at(self, share: TenantSlots) -> None:
        if share.is_empty and not share.promised:
            self._away.add(share)
        else:
            self._away.discard(share)


class TenantSlots(Slots):
    """One tenant's part: slots as any worker has them, but others want them too."""

    def __init__(
        self, capacity: SharedSlots, tenant: str, count: int, now: Callable[[], float]
    ) -> None:
        super().__init__(count, now)
        self.tenant = tenant
        self.promised = 0
        #: It had no use for slots when it was last seen.
        self.had_nothing = False
        #: So its next job waits for nobody's turn.
        self.comes_first = True
        self._capacity = capacity
        self._claim: Callable[[], None] = _no_tenant
        self._start: Callable[[], None] = _no_tenant
        self._is_called = False
        self._has_left = False

    def attach(self, claim: Callable[[], None], start: Callable[[], None]) -> None:
        self._claim, self._start = claim, start

    def on_room(self) -> None:
        self._claim()

    def on_turn(self) -> None:
        """Soon, and not inside of whoever passes the turn on: that could go on for ever."""
        if not self._is_called:
            self._is_called = True
            self._capacity.soon(self._take_turn)

    def _take_turn(self) -> None:
        self._is_called = False
        self._start()

    @property
    def suspects(self) -> int:
        return self._suspects

    @property
    def is_quick(self) -> bool:
        """Its jobs have been ending so fast that some are worth being claimed ahead."""
        return self._ahead() > 0

    @property
    def is_empty(self) -> bool:
        """Nothing in hand."""
        return not self.running and not self.waiting

    @property
    def is_ready(self) -> bool:
        return bool(self.waiting) and len(self.running) < self.count

    def leave(self) -> None:
        self._has_left = True
        self._capacity.leave(self)

    def grant(self, room: int) -> int:
        return 0 if self._has_left else self._capacity.grant(self, room)

    def settle(self, asked: int, got: int) -> None:
        self._capacity.settle(self, asked, got)

    def free(self) -> int:
        return max(0, min(super().free(), self._capacity.free(self)))

    def take(self, held: HeldLease) -> None:
        super().take(held)
        if not self._has_left:
            self._capacity.taken(self, held)

    def next(self) -> HeldLease | None:
        """The next to start, if a slot is free and it is this one's turn."""
        first = self._capacity.first_to_start()
        if first is self:
            held = super().next()
            self._capacity.started(self)
            return held
        if first is not None:
            first.on_turn()
        return None

    def end(self, held: HeldLease) -> None:
        super().end(held)
        if not self._has_left:
            self._capacity.ended(self, held)

    def give_back(self) -> list[HeldLease]:
        """Its worker ends: it stands in nobody's way any more."""
        given = super().give_back()
        if not self._has_left:
            self._capacity.withdraw(self)
        return given

    def give_back_late(self) -> list[HeldLease]:
        """Who runs nothing waits for its turn, not for its own long jobs. Its first job stays: it
        would only be claimed again."""
        return super().give_back_late() if self.running else []

    def _given(self, given: list[HeldLease]) -> list[HeldLease]:
        super()._given(given)
        if not self._has_left:
            self._capacity.given_back(self, given)
        return given


def _no_tenant() -> None:
    """Until its worker has started."""
