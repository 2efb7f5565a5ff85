"""The queues that a claimer serves: those that it was given, or all that have ready jobs.

With ``*`` the claimer finds its queues in the store: every second while it claims jobs, and before
each claim after one that found nothing. So a claim from an idle store is one such read. A
notification names its queue, which is then claimed from at once, without that read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from freehold.errors import StoreError
from freehold.model.job import DEFAULT_QUEUE
from freehold.model.limit import ALL_QUEUES

#: How often a busy claimer looks for further queues.
FIND_SECONDS = 1.0
#: One read returns at most this many. Of more queues, each read returns the next ones.
FIND_LIMIT = 1000
#: A queue without ready jobs for this long is forgotten: its names may be many and short-lived.
FORGET_SECONDS = 600.0
#: Reads may take this share of the time. They walk over the same dead entries as a claim from the
#: head of the index: see `claim_cursor`.
_SHARE = 1 / 20
_CHEAP_SECONDS = 0.005


class ReadyQueues(Protocol):
    async def ready_queues(self, after: str, limit: int) -> list[str]: ...


class ServedQueues:
    """``active`` are the queues of the next claim."""

    def __init__(self, store: ReadyQueues, names: Sequence[str], now: Callable[[], float]) -> None:
        self._store = store
        self._now = now
        self._all = ALL_QUEUES in names
        self._names = frozenset(names)
        self.active = [DEFAULT_QUEUE] if self._all else list(names)
        self._put_off = False
        self._after = ""
        self._due_at = self._not_before = 0.0
        self._is_complete = not self._all
        #: When each queue last had ready jobs, as far as it was read.
        self._seen_at: dict[str, float] = {}
        self._forget_at = 0.0

    def serves(self, queue: str) -> bool:
        """Called in another thread."""
        return self._all or queue in self._names

    def found_nothing(self) -> None:
        """The last claim found no job: the next one looks for further queues before."""
        self._due_at = 0.0

    def unsure_seconds(self) -> float:
        """Until the next claim, if the last one may have missed a queue; 0: it has not."""
        return 0.0 if self._is_complete else max(0.001, self._not_before - self._now())

    def long_empty(self) -> list[str]:
        """The queues that had no ready jobs for long, each once."""
        now = self._now()
        if now < self._forget_at:
            return []
        self._forget_at = now + FORGET_SECONDS / 10
        empty = [queue for queue, at in self._seen_at.items() if now - at >= FORGET_SECONDS]
        for queue in empty:
            del self._seen_at[queue]
        return empty

    async def refresh(self, named: Collection[str] = ()) -> bool:
        """Called before each claim with the queues that notifications have named since the last
        one. Returns whether the queues were read. After an error the claim is from those that are
        known."""
        if not self._all:
            return False
        if named:
            self.active = list(dict.fromkeys((*self.active, *named)))
            self._seen_at.update(dict.fromkeys(named, self._now()))
        # Once only, or a queue with many notifications would keep the others from being found.
        if (named and not self._put_off) or self._now() < max(self._due_at, self._not_before):
            self._put_off = bool(named)
            self._is_complete = False
            return False
        self._put_off = False
        try:
            await self._find()
        except StoreError:
            self.active = self.active or [DEFAULT_QUEUE]
            self._not_before = self._now() + FIND_SECONDS
            raise
        return True

    async def _find(self) -> None:
        began, after = self._now(), self._after
        self._is_complete = False
        self.active = await self._store.ready_queues(after, FIND_LIMIT)
        is_last = len(self.active) < FIND_LIMIT
        self._after = "" if is_last else self.active[-1]
        self._is_complete = is_last and not after
        ended = self._now()
        cost = ended - began
        self._seen_at.update(dict.fromkeys(self.active, ended))
        self._due_at = ended + FIND_SECONDS
        self._not_before = ended + min(cost / _SHARE, FIND_SECONDS) * (cost >= _CHEAP_SECONDS)
