"""Which claimed jobs run, which wait for a slot, and how many more to claim.

Short jobs are claimed ahead, so that no slot waits for the database: about a tenth of a second's
work, measured by how fast jobs have been ending. A job that still waits after a second is given
back, because another worker may have a free slot. A job that once lost its worker may crash this
one too: it is not claimed ahead, and while the worker holds one, no other job is.

Limited jobs are not prefetched, because another worker could run them now. To avoid starving behind
prefetched jobs, a limited job is claimed when a slot will be free before the next claim, and goes
to the front of the line.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from freehold.telemetry import Telemetry
from freehold.worker.held_leases import HeldLease

AHEAD_SECONDS = 0.1
AHEAD_LIMIT = 1000
LATE_SECONDS = 1.0
_MEASURE_SECONDS = 0.05
_MEASURE_JOBS = 50
#: With jobs waiting, a claim is made only for at least this part (1/4) of all that may be held.
_CLAIMS_PER_PREFETCH = 4


class PrefetchPace:
    """How fast jobs have been ending, and how many make a tenth of a second's work.

    Measured every twentieth of a second, or as soon as many jobs have ended, so that an idle
    worker reaches the right number quickly when a flood of jobs arrives.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        #: Jobs that have ended since the last measurement.
        self.ended = 0
        #: Held jobs that once lost their worker. While there is one, no job is claimed ahead.
        self.suspects = 0
        self._since = now()
        self._rate = 0.0

    def ahead(self) -> int:
        elapsed = self._now() - self._since
        if elapsed >= _MEASURE_SECONDS or (self.ended >= _MEASURE_JOBS and elapsed > 0):
            # The old rate counts less the longer this measurement took: many jobs that end at
            # one moment are not yet a flood, and slow jobs are measured rarely.
            before = 0.5 ** (elapsed / _MEASURE_SECONDS) if self._rate else 0.0
            self._rate = before * self._rate + (1.0 - before) * (self.ended / elapsed)
            self.ended, self._since = 0, self._now()
        return 0 if self.suspects else min(AHEAD_LIMIT, int(self._rate * AHEAD_SECONDS))


class Slots:
    """Counts and order only; the executor starts the attempts."""

    def __init__(self, count: int, now: Callable[[], float]) -> None:
        self.count = count
        self.running: set[HeldLease] = set()
        self.waiting: deque[HeldLease] = deque()
        self._now = now
        self._pace = PrefetchPace(now)
        #: How many of the waiting jobs are limited. They are in front.
        self._limited = 0

    def show_in(self, telemetry: Telemetry) -> None:
        telemetry.watch("slots", lambda: self.count)
        telemetry.watch("slots_running", lambda: len(self.running))
        telemetry.watch("slots_waiting", lambda: len(self.waiting))

    def add(self, lease: HeldLease) -> None:
        if lease.is_limited:
            self.waiting.insert(self._limited, lease)
            self._limited += 1
        else:
            self.waiting.append(lease)
        self._pace.suspects += lease.attempt.lost_attempts > 0

    def room(self) -> int:
        """How many to claim now; 0 while enough jobs wait."""
        ahead = self._pace.ahead()
        room = self.count + ahead - len(self.running) - len(self.waiting)
        # A small claim costs as much as a large one: while jobs wait, let the room grow first.
        if self.waiting and room * _CLAIMS_PER_PREFETCH < self.count + ahead:
            return 0
        return max(0, room)

    def free(self) -> int:
        """How many could start at once."""
        return max(0, self.count - len(self.running) - len(self.waiting))

    def starting_soon(self) -> int:
        """How many could start at once, or before the next claim if they wait in front."""
        ahead = self._pace.ahead()
        ending = (len(self.running) + ahead) // _CLAIMS_PER_PREFETCH if ahead else 0
        return max(self.free(), ending - self._limited)

    def attach(self, claim: Callable[[], None], start: Callable[[], None]) -> None:
        """For shared slots: ``claim`` is called at new room, ``start`` at the turn to start."""

    def grant(self, room: int) -> int:
        """How much of the room may be claimed now: all of it, unless the slots are shared."""
        return room

    def claim_ended(self, granted: int, claimed: int) -> None:
        """The claim for which room was granted is over."""

    def next(self) -> HeldLease | None:
        """The next lease to start, if a slot is free."""
        if self.waiting and len(self.running) < self.count:
            lease = self.waiting.popleft()
            self._limited -= lease.is_limited
            self.running.add(lease)
            return lease
        return None

    def end(self, lease: HeldLease) -> None:
        self.running.discard(lease)
        self._pace.suspects -= lease.attempt.lost_attempts > 0
        self._pace.ended += 1

    def give_back(self) -> list[HeldLease]:
        """Removes and returns all leases that have not started."""
        return self._give_back(list(self.waiting))

    def give_back_late(self) -> list[HeldLease]:
        """Those that have waited too long. Limited jobs stay: they have used up a start."""
        late = self._now() - LATE_SECONDS
        return self._give_back(
            [lease for lease in self.waiting if lease.claimed_at <= late and not lease.is_limited]
        )

    def _give_back(self, given: list[HeldLease]) -> list[HeldLease]:
        gone = set(given)
        self.waiting = deque(lease for lease in self.waiting if lease not in gone)
        self._limited = sum(lease.is_limited for lease in self.waiting)
        self._pace.suspects -= sum(lease.attempt.lost_attempts > 0 for lease in given)
        return given
