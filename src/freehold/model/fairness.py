"""Shares by weight (stride scheduling): which queue or tenant is served next, and how much. Pure.

Each queue (or tenant) has a *pass*, which grows by what it was served, divided by its weight. The
queue with the lowest pass is next. An idle queue earns no credit: when it returns, its pass is
raised to the current one. So shares follow the weights while all queues are busy, an idle queue
delays no other, and the lightest queue is still served.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable


class Fairness:
    """The passes of the queues of one claimer."""

    def __init__(self, queues: Iterable[str]) -> None:
        self._passes = dict.fromkeys(queues, 0.0)
        #: Of each queue. A new weight applies to what is served from then on.
        self.weights = dict.fromkeys(self._passes, 1.0)
        self._now = 0.0

    def join(self, queue: str, weight: float) -> None:
        self.weights[queue] = weight
        self.come_back(queue)

    def forget(self, queue: str) -> None:
        """It has been empty for long. Should it return, it is served like a new one."""
        self._passes.pop(queue, None)
        self.weights.pop(queue, None)

    def come_back(self, queue: str, behind: float = 0.0) -> None:
        """Raise the pass of a queue that was idle, leaving a credit of at most ``behind``."""
        latest = self._now - behind / self.weights[queue]
        self._passes[queue] = max(self._passes.get(queue, latest), latest)

    def first(self, queues: Collection[str]) -> str:
        """The next queue among these. One that is not known yet has the weight 1."""
        for queue in queues:
            if queue not in self._passes:
                self.join(queue, 1.0)
        return min(queues, key=lambda queue: (self._passes[queue], -self.weights[queue], queue))

    def share(self, queue: str, among: Collection[str], room: int) -> int:
        """The queue's share of the room, at least one."""
        weights = sum(self.weights[each] for each in among)
        return max(1, min(room, math.ceil(room * self.weights[queue] / weights - 1e-9)))

    def served(self, queue: str, count: int, wanted: int) -> None:
        if count:
            self._now = max(self._now, self._passes[queue])
            self._passes[queue] += count / self.weights[queue]
        if count < wanted:
            self.come_back(queue)
