"""3. Free slots -> leases: as many as can run, and a few more where that keeps them busy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from freehold.errors import StoreError
from freehold.model.fairness import Fairness
from freehold.model.job import Attempt
from freehold.store.claim_cursor import ClaimCursor, ClaimCursors
from freehold.store.types import ClaimRequest, QueueDemand
from freehold.telemetry import Telemetry, log

#: How soon a claimer that found nothing looks again: at first soon, then ever more rarely.
FIRST_WAIT_SECONDS = 0.005
#: A fleet is woken as a whole by one job: each further look costs as many as there are workers.
_RARER = 4
#: Where notifications are proven to arrive, polling is only the net.
LISTENING_WAIT_SECONDS = 10.0
#: One claim takes at most this many.
CLAIM_LIMIT = 1000


class ClaimStore(Protocol):
    async def claim(self, ask: ClaimRequest) -> list[Attempt]: ...


class Claimer:
    """Claims while there is room, sleeps while there is none or nothing to claim."""

    def __init__(
        self,
        store: ClaimStore,
        owner: str,
        telemetry: Telemetry,
        *,
        queues: Sequence[str],
        tasks: frozenset[str] | None,
        lease_seconds: float,
        poll_seconds: float,
        room: Callable[[], int],
        soon: Callable[[], int],
        take: Callable[[list[Attempt], float, Collection[int]], None],
        is_listening: Callable[[], bool],
        on_nothing: Callable[[], None],
        settle: Callable[[int, int], None],
    ) -> None:
        self._store = store
        self._owner = owner
        self._telemetry = telemetry
        self._fairness = Fairness(queues)
        self._memory = ClaimCursors(asyncio.get_running_loop().time)
        self._tasks = tasks
        self._lease_seconds = lease_seconds
        self._poll_seconds = poll_seconds
        self._room = room
        #: How many could start before the next claim.
        self._soon = soon
        self._take = take
        #: Told how many were asked for and how many came.
        self._settle = settle
        self._is_listening = is_listening
        #: Recovery runs inside claiming too: whoever finds nothing looks for expired leases.
        self._on_nothing = on_nothing
        self._poke = asyncio.Event()
        self._stopping = False
        self._wait_seconds = FIRST_WAIT_SECONDS
        self._found_nothing = False
        self.is_idle = False

    @property
    def is_settled(self) -> bool:
        """The last look found nothing, from the start, and nothing was heard since."""
        return self._found_nothing and not self._poke.is_set()

    def poke(self) -> None:
        """A slot was freed, or somebody enqueued."""
        self._poke.set()

    def wake(self) -> None:
        """There may be something: look at once, and again soon."""
        self._wait_seconds = FIRST_WAIT_SECONDS
        self._poke.set()

    def stop(self) -> None:
        """No claim begins any more; one that is under way ends in its own time."""
        self._stopping = True
        self._poke.set()

    async def run(self) -> None:
        while not self._stopping:
            self._poke.clear()
            self._found_nothing = False
            room = self._room()
            if room <= 0:
                await self._poke.wait()
                continue
            claimed = await self._claim(min(room, CLAIM_LIMIT))
            self._settle(room, claimed)
            if claimed:
                self._wait_seconds = FIRST_WAIT_SECONDS
                self.is_idle = False
                # Let what was claimed begin before looking for more.
                await asyncio.sleep(0)
            else:
                self.is_idle = True
                self._on_nothing()
                await self._back_off()

    async def _claim(self, room: int) -> int:
        """By weight: each queue its share, then what some could not use to those that could."""
        claimed = 0
        busy = self._fairness.queues
        while busy and claimed < room and not self._stopping:
            full = []
            while busy and claimed < room and not self._stopping:
                queue = self._fairness.first(busy)
                asked = self._fairness.share(queue, busy, room - claimed)
                busy.remove(queue)
                count = await self._claim_from(queue, asked)
                if count is None:
                    return claimed
                claimed += count
                if count >= asked:
                    full.append(queue)
            busy = full
        self._found_nothing = claimed == 0 and not self._unsure_seconds()
        return claimed

    async def _claim_from(self, queue: str, count: int) -> int | None:
        """None: the store cannot be reached just now."""
        sent, began = asyncio.get_running_loop().time(), self._telemetry.now()
        soon, place = self._soon(), self._memory.place(queue)
        ask = ClaimRequest(
            owner=self._owner,
            lease_seconds=self._lease_seconds,
            wants=(QueueDemand(queue, count, max(0, count - soon)),),
            tasks=self._tasks,
            memory=self._memory,
        )
        try:
            attempts = await self._store.claim(ask)
        except StoreError as error:
            # Leases of a claim whose answer was lost run out by themselves.
            self._telemetry.count("store_errors", label="claimer")
            log.warning("claiming failed, trying again: %s", error)
            self._wait_seconds = max(self._wait_seconds, self._poll_seconds)
            self._memory.forget()
            return None
        self._telemetry.count("claims")
        self._telemetry.measure("claim_seconds", self._telemetry.now() - began)
        self._fairness.weigh(queue, place.weight)
        # What was not claimed for want of slots is still owed.
        asked = min(count, soon) if place.is_limited else count
        self._fairness.served(queue, len(attempts), asked)
        if attempts:
            self._telemetry.count("claimed", len(attempts))
            self._take(attempts, sent + self._lease_seconds, _limited(attempts, place))
        return len(attempts)

    async def _back_off(self) -> None:
        # Room under a limit comes back by the end of a lease, or by time: nobody says a word.
        patient = self._is_listening() and not self._is_held_back()
        longest = LISTENING_WAIT_SECONDS if patient else self._poll_seconds
        if unsure := self._unsure_seconds():
            longest = min(longest, unsure)
        try:
            async with asyncio.timeout(min(self._wait_seconds, longest)):
                await self._poke.wait()
        except TimeoutError:
            self._wait_seconds = min(self._wait_seconds * _RARER, longest)

    def _unsure_seconds(self) -> float:
        """What came in behind a claim's place is looked for soon: see `place`."""
        waits = [self._memory.place(queue).unsure_seconds() for queue in self._fairness.queues]
        return min((wait for wait in waits if wait), default=0.0)

    def _is_held_back(self) -> bool:
        return any(self._memory.place(queue).held_back for queue in self._fairness.queues)


def _limited(attempts: list[Attempt], place: ClaimCursor) -> set[int]:
    """Those whose queue, tenants or key have a limit. One that lost its worker is in nobody's way:
    it stands last, so that nothing waits behind it."""
    return {
        attempt.job_id
        for attempt in attempts
        if attempt.lost == 0 and (place.is_limited or attempt.limit_key in place.keys)
    }
