"""The worker of one tenant, in a process that serves many."""

from __future__ import annotations

from dataclasses import dataclass

from freehold.model.tenant import Tenant
from freehold.telemetry import Telemetry
from freehold.tenants.tenant_slots import TenantSlots
from freehold.tenants.wake_schedule import WorkerActivity
from freehold.worker.execution.thread_pool import ThreadPool
from freehold.worker.worker import Worker


@dataclass(frozen=True, slots=True)
class TenantWorker:
    """Runs from when its tenant has work until the host drains it."""

    tenant: Tenant
    worker: Worker
    slots: TenantSlots

    @property
    def activity(self) -> WorkerActivity:
        return WorkerActivity(
            is_idle=self.worker.is_idle, has_running_jobs=bool(self.worker.attempts)
        )


class SharedThreads(ThreadPool):
    """Threads for the handlers of all tenants; they outlive a single worker."""

    def close(self) -> None:
        """Called by a worker that ends; the other workers still need the threads."""

    def end(self) -> None:
        super().close()


class ForwardingTelemetry(Telemetry):
    """Counts for one tenant's worker, and for the whole process."""

    def __init__(self, into: Telemetry) -> None:
        super().__init__()
        self._into = into
        self.store_health = into.store_health

    def count(self, name: str, amount: int = 1, label: str = "") -> None:
        super().count(name, amount, label)
        self._into.count(name, amount, label)

    def measure(self, name: str, seconds: float) -> None:
        super().measure(name, seconds)
        self._into.measure(name, seconds)
