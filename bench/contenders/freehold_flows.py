"""Freehold with jobs that belong together. A bulk call stores one flow, with a job that follows."""

from __future__ import annotations

import math

from bench.contenders.freehold import FreeholdPostgres
from bench.counting import tick

FOLLOWER = "bench.follower"


class FreeholdBatch(FreeholdPostgres):
    """The members of one batch, and its `on_end`."""

    name = "freehold-batch"

    def _define(self) -> None:
        super()._define()

        @self.app.task(name=FOLLOWER)
        async def follower() -> None:
            tick()

        self.follower = follower

    async def enqueue_bulk(self, count: int) -> None:
        members = (self.job.prepare(0.0) for _ in range(count))
        await self.app.abatch(members, on_end=self.follower.prepare())


class FreeholdMap(FreeholdBatch):
    """A workflow whose last node follows one `flow.map`: the way for more than 10,000 sources."""

    name = "freehold-map"

    def _define(self) -> None:
        super()._define()

        @self.app.task(name="bench.part")
        async def part(number: int) -> None:
            tick()

        self.part = part

    async def enqueue_bulk(self, count: int) -> None:
        async with self.app.workflow("fan-in") as flow:
            parts = flow.map(self.part, range(count))
            flow.add(self.follower, after=parts)


class FreeholdEdges(FreeholdMap):
    """Two layers of nodes with an edge from each to each, so that there are ``count`` edges."""

    name = "freehold-edges"

    async def enqueue_bulk(self, count: int) -> None:
        width = range(layer(count))
        async with self.app.workflow("edges") as flow:
            first = [flow.add(self.part, number) for number in width]
            second = [flow.add(self.part, number, after=first) for number in width]
            flow.add(self.follower, after=second)


def layer(edges: int) -> int:
    """The nodes of one of two layers."""
    return math.isqrt(edges)
