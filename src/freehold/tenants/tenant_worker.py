"""A tenant's worker in a process that it shares with others'."""

from __future__ import annotations

from freehold.exit_codes import EXIT_DONE
from freehold.model.tenant import Tenant
from freehold.telemetry import Telemetry
from freehold.tenants.shared_slots import TenantSlots
from freehold.tenants.wake_schedule import WorkerActivity
from freehold.worker.execution.thread_pool import ThreadPool
from freehold.worker.worker import Worker


class TenantWorker:
    """Comes when its tenant has something to do, and goes when it is told to."""

    def __init__(self, tenant: Tenant, worker: Worker, share: TenantSlots) -> None:
        self.tenant = tenant
        self.worker = worker
        self.share = share
        self._has_begun = False
        self._is_draining = False

    async def live(self) -> int:
        """Until drained. Answers the exit code."""
        if self._is_draining:
            return EXIT_DONE
        self._has_begun = True
        return await self.worker.run()

    @property
    def doing(self) -> WorkerActivity:
        is_idle = self._has_begun and self.worker.is_idle
        return WorkerActivity(is_idle=is_idle, runs_something=bool(self.worker.attempts))

    def sweep(self) -> None:
        if self._has_begun:
            self.worker.sweep()

    def drain(self) -> None:
        if not self._is_draining:
            self._is_draining = True
            if self._has_begun:
                self.worker.drain()

    def hurry(self) -> None:
        self.drain()
        if self._has_begun:
            self.worker.hurry()


class SharedThreads(ThreadPool):
    """Threads for handlers of all tenants: they do not end with one of the workers."""

    def close(self) -> None:
        """By a worker, which is not the last."""

    def end(self) -> None:
        super().close()


class ForwardingTelemetry(Telemetry):
    """What one tenant's worker counts, which the whole process counts too."""

    def __init__(self, into: Telemetry) -> None:
        super().__init__()
        self._into = into

    def count(self, name: str, amount: int = 1, label: str = "") -> None:
        super().count(name, amount, label)
        self._into.count(name, amount, label)

    def measure(self, name: str, seconds: float) -> None:
        super().measure(name, seconds)
        self._into.measure(name, seconds)
