"""Shares by weight: who is served next, and how much of what there is. Pure.

Each queue (or tenant) has a *pass*, which grows with what it was served, the slower the more it
weighs; whoever has the lowest is next. A queue that had nothing to give does not save up for later:
when it comes back it stands where the others are. So shares follow the weights while all are
busy, nobody waits for a queue that is idle, and the lightest is served once in a while.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable


class Fairness:
    """What each queue was served, as one claimer has seen it."""

    def __init__(self, queues: Iterable[str]) -> None:
        self._passes = dict.fromkeys(queues, 0.0)
        self._weights = dict.fromkeys(self._passes, 1.0)
        self._now = 0.0

    @property
    def queues(self) -> list[str]:
        return list(self._passes)

    def weigh(self, queue: str, weight: float) -> None:
        self._weights[queue] = weight

    def join(self, queue: str, weight: float) -> None:
        self._weights[queue] = weight
        self.come_back(queue)

    def come_back(self, queue: str, behind: float = 0.0) -> None:
        """It was away: it stands where the others are, or is owed at most so much."""
        latest = self._now - behind / self._weights[queue]
        self._passes[queue] = max(self._passes.get(queue, latest), latest)

    def first(self, queues: Collection[str]) -> str:
        """Who is next among these."""
        return min(queues, key=lambda queue: (self._passes[queue], -self._weights[queue], queue))

    def share(self, queue: str, among: Collection[str], room: int) -> int:
        """How much of the room is this queue's, at least one."""
        weights = sum(self._weights[each] for each in among)
        return max(1, min(room, math.ceil(room * self._weights[queue] / weights - 1e-9)))

    def served(self, queue: str, count: int, asked: int) -> None:
        if count:
            self._now = max(self._now, self._passes[queue])
            self._passes[queue] += count / self._weights[queue]
        if count < asked:
            self.come_back(queue)
