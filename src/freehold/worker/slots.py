"""Which attempts run now and which wait in hand: the worker's own small queue.

Where jobs are short, some are claimed ahead, so that no slot waits for the database. How many
follows from how fast they have been ending: about a tenth of a second's work. If they take
longer after all, what still waits after a second is given back: others may have a slot for it. A
job that once lost its worker takes no neighbours along: it is not claimed ahead itself, and while
one is in hand, nothing is.

What is limited is not claimed ahead either: others could have run it meanwhile. But what was
claimed ahead keeps all slots taken, for ever, and limited jobs must have their share beside it.
So they are claimed when they start before the next claim, and stand first in line.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from freehold.worker.held_leases import HeldLease

AHEAD_SECONDS = 0.1
AHEAD_LIMIT = 1000
LATE_SECONDS = 1.0
_LOOK_SECONDS = 0.05
_MANY = 50
#: What one claim brings, at least, is this part of what is in hand.
_CLAIMS_PER_PREFETCH = 4


class PrefetchPace:
    """How fast jobs have been ending, and how many make a tenth of a second's work.

    Looked at every twentieth of a second, or as soon as many have ended: whoever comes to a flood
    from rest should not take it up by spoonfuls for long.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._ended = 0
        self._since = now()
        self._rate = 0.0

    def end(self) -> None:
        self._ended += 1

    def ahead(self) -> int:
        elapsed = self._now() - self._since
        if elapsed >= _LOOK_SECONDS or (self._ended >= _MANY and elapsed > 0):
            # The longer the look, the less counts what was before: many that end at one moment
            # are no flood, and slow jobs are rarely looked at.
            before = 0.5 ** (elapsed / _LOOK_SECONDS) if self._rate else 0.0
            self._rate = before * self._rate + (1.0 - before) * (self._ended / elapsed)
            self._ended, self._since = 0, self._now()
        return min(AHEAD_LIMIT, int(self._rate * AHEAD_SECONDS))


class Slots:
    """Counts and order only; starting is somebody else's."""

    def __init__(self, count: int, now: Callable[[], float]) -> None:
        self.count = count
        self.running: set[HeldLease] = set()
        self.waiting: deque[HeldLease] = deque()
        self._now = now
        self._pace = PrefetchPace(now)
        #: Jobs in hand that once lost their worker.
        self._suspects = 0
        #: How many of those that wait are limited, and so stand first.
        self._limited = 0

    def take(self, held: HeldLease) -> None:
        if held.is_limited:
            self.waiting.insert(self._limited, held)
            self._limited += 1
        else:
            self.waiting.append(held)
        self._suspects += held.attempt.lost > 0

    def room(self) -> int:
        """How many to claim now; nothing while what waits would still last a while."""
        ahead = self._ahead()
        in_hand = len(self.running) + len(self.waiting)
        room = self.count + ahead - in_hand
        # Small claims cost as much as large ones: with work in hand, wait until it is worth it.
        if self.waiting and room * _CLAIMS_PER_PREFETCH < self.count + ahead:
            return 0
        return max(0, room)

    def free(self) -> int:
        """How many could start at once."""
        return max(0, self.count - len(self.running) - len(self.waiting))

    def soon(self) -> int:
        """How many could start at once, or before the next claim if they stand first in line."""
        ahead = self._ahead()
        ending = (len(self.running) + ahead) // _CLAIMS_PER_PREFETCH if ahead else 0
        return max(self.free(), ending - self._limited)

    def attach(self, claim: Callable[[], None], start: Callable[[], None]) -> None:
        """What to call when room, or the turn to start, comes from outside: here never."""

    def grant(self, room: int) -> int:
        """How much of the room may be claimed now: all, where nobody else shares it."""
        return room

    def settle(self, asked: int, got: int) -> None:
        """The claim that was granted is over."""

    def _ahead(self) -> int:
        return 0 if self._suspects else self._pace.ahead()

    def next(self) -> HeldLease | None:
        """The next to start, if a slot is free."""
        if self.waiting and len(self.running) < self.count:
            held = self.waiting.popleft()
            self._limited -= held.is_limited
            self.running.add(held)
            return held
        return None

    def end(self, held: HeldLease) -> None:
        self.running.discard(held)
        self._suspects -= held.attempt.lost > 0
        self._pace.end()

    def give_back(self) -> list[HeldLease]:
        """Everything that has not started."""
        return self._given(list(self.waiting))

    def give_back_late(self) -> list[HeldLease]:
        """What has waited for too long. Not what is limited: it has used up a start of its rate."""
        late = self._now() - LATE_SECONDS
        return self._given(
            [held for held in self.waiting if held.taken_at <= late and not held.is_limited]
        )

    def _given(self, given: list[HeldLease]) -> list[HeldLease]:
        gone = set(given)
        self.waiting = deque(held for held in self.waiting if held not in gone)
        self._limited = sum(held.is_limited for held in self.waiting)
        self._suspects -= sum(held.attempt.lost > 0 for held in given)
        return given
