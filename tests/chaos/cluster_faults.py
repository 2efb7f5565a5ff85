"""Faults of a cluster, one after another: the next one begins when all nodes are up again."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Callable

from tests.chaos.cluster import Cluster, Node, send
from tests.chaos.database import Target
from tests.chaos.faults import Faults
from tests.chaos.ghosts import Ghosts
from tests.chaos.plan import CLUSTER_FAULTS, Plan
from tests.chaos.processes import Processes
from tests.chaos.recorder import Recorder, micros

_MICROS = 1_000_000
#: How long the walsenders stand still before the crash.
_LAG_SECONDS = 5.0
#: A frozen or separated node comes back this long after another one has become the primary.
_LATER_SECONDS = 5.0
_CALM_SECONDS = 3.0


class ClusterFaults(Faults):
    """Each is over when all nodes are up again."""

    def __init__(
        self, plan: Plan, processes: Processes, recorder: Recorder, cluster: Cluster
    ) -> None:
        super().__init__(plan, processes, recorder)
        self._cluster = cluster

    def begin(self, target: Target, ghosts: Ghosts) -> None:
        self._spawn(self._rotate(), "cluster faults")

    async def _rotate(self) -> None:
        chance = random.Random(f"{self._plan.seed}/cluster")
        while self._plan.faults:
            kinds = [kind for kind in self._kinds() for _ in range(CLUSTER_FAULTS[kind])]
            chance.shuffle(kinds)
            for kind in kinds:
                if not await self._continues_after(_CALM_SECONDS):
                    return
                await self._inject(kind)

    def _kinds(self) -> list[str]:
        can_partition = self._cluster.network.can_partition
        return [kind for kind in self._plan.faults if can_partition or kind != "partition"]

    async def _inject(self, kind: str) -> None:
        primary = await asyncio.to_thread(self._cluster.primary)
        before = self._names()
        at = micros()
        end = await asyncio.to_thread(self._begin_fault, kind, primary)
        await asyncio.to_thread(self._cluster.wait_until_another_is_primary, primary)
        seconds = (micros() - at) / _MICROS
        self.new_primary_seconds.setdefault(kind, []).append(round(seconds, 1))
        if kind in ("node_freeze", "partition"):
            await asyncio.sleep(_LATER_SECONDS)
        await asyncio.to_thread(end)
        await asyncio.to_thread(self._cluster.wait_until_healthy)
        self._record_shared_fault(kind, at, before)

    def _begin_fault(self, kind: str, primary: Node) -> Callable[[], None]:
        """Returns what ends it."""
        cluster = self._cluster
        if kind == "switchover":
            return cluster.switch_over(primary)
        if kind == "node_freeze":
            # Patroni with it or not: both happen.
            patroni = (
                [primary.patroni.pid] if primary.patroni and self._chance.random() < 0.5 else []
            )
            frozen = [*patroni, *primary.server_processes()]
            send(frozen, signal.SIGSTOP)
            return lambda: send(frozen, signal.SIGCONT)
        if kind == "partition":
            cluster.network.cut(primary.number)
            return lambda: cluster.network.join(primary.number)
        if kind == "lagging_crash":
            send(primary.walsenders(), signal.SIGSTOP)
            time.sleep(_LAG_SECONDS)
        primary.kill()
        return lambda: cluster.start_node(primary)
