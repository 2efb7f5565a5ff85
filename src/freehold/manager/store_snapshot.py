"""What the manager reads from the store to scale its workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from freehold.model.explain import PauseInfo
from freehold.model.limit import ALL_QUEUES
from freehold.model.scaling import Load
from freehold.model.worker_info import LiveWorker
from freehold.store.types import QueueInfo


class SnapshotStore(Protocol):
    async def queues(self) -> list[QueueInfo]: ...

    async def pause_of_all(self) -> PauseInfo | None: ...

    async def workers(self) -> list[LiveWorker]: ...

    async def now(self) -> datetime: ...


class ManagerStore(SnapshotStore, Protocol):
    """What a manager does beside: it knows that an owner is dead before its lease expires."""

    async def expire_leases(self, owner: str) -> int: ...

    async def remove_worker(self, owner: str) -> None: ...

    async def record_scaling(self, manager: str, before: int, after: int, reason: str) -> None: ...


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """Queues and workers at one time of the store's clock. No queues, if all are paused."""

    queues: dict[str, QueueInfo]
    workers: dict[str, LiveWorker]
    now: datetime

    def load(self, queues: Sequence[str], owners: Iterable[str]) -> Load:
        """What can be claimed from these queues, and what these workers have leased."""
        open_queues = [
            queue
            for name, queue in self.queues.items()
            if (name in queues or ALL_QUEUES in queues) and not queue.paused
        ]
        oldest = [queue.oldest_ready_at for queue in open_queues if queue.oldest_ready_at]
        ours = [self.workers[owner] for owner in owners if owner in self.workers]
        return Load(
            ready=sum(queue.claimable for queue in open_queues),
            leased=sum(worker.running + worker.waiting for worker in ours),
            oldest_seconds=max(((self.now - at).total_seconds() for at in oldest), default=0.0),
        )


async def take_snapshot(store: SnapshotStore) -> StoreSnapshot:
    queues, workers, now = await store.queues(), await store.workers(), await store.now()
    if await store.pause_of_all() is not None:
        queues = []  # nothing can be claimed
    return StoreSnapshot(
        {queue.name: queue for queue in queues}, {worker.owner: worker for worker in workers}, now
    )
