"""Host processes, and the tenants that they serve."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from freehold import Freehold
from freehold.model.tenant import TenantState
from tests.tenants import host_app
from tests.worker.fleet import TIMEOUT_SECONDS, WorkerProcess, eventually
from tests.worker.handler_record import GrowingLines
from tests.worker.lifeline import LIFELINE_VARIABLE


@dataclass(frozen=True)
class RecordLine:
    """What one attempt of a tenant's job did."""

    tenant: str
    job: int
    token: int
    what: str
    pid: int
    at: float


class HostProcesses:
    """The tenants of one control store, and hosts in processes of their own."""

    def __init__(self, app: Freehold, url: str, folder: Path) -> None:
        self.app = app
        self.url = url
        self.folder = folder
        self.record = folder / "record"
        self._lines = GrowingLines(self.record)
        self.processes: list[WorkerProcess] = []
        app.url = url
        app.migrate()

    def add(self, name: str, weight: float = 1.0, max_slots: int | None = None) -> None:
        self.app.tenants.create(name, weight=weight, max_slots=max_slots)

    def enqueue(self, tenant: str, count: int, seconds: float = 0.0) -> None:
        jobs = [host_app.job.prepare(tenant, seconds) for _ in range(count)]
        for start in range(0, count, 1000):
            self.app.tenant(tenant).enqueue_many(jobs[start : start + 1000])

    def start(self, *arguments: str, tenants: str = "all", lease: float = 30.0) -> WorkerProcess:
        log = self.folder / f"host-{len(self.processes) + 1}.log"
        command = ["--app", "tests.tenants.host_app:app", "--lease-timeout-seconds", str(lease)]
        env = {
            **os.environ,
            "FREEHOLD_URL": self.url,
            host_app.RECORD_VARIABLE: str(self.record),
            LIFELINE_VARIABLE: "stdin",
        }
        host = WorkerProcess([*command, "--tenants", tenants, *arguments], env, log)
        self.processes.append(host)
        return host

    def lines(self, what: str, tenant: str | None = None) -> list[RecordLine]:
        return [
            RecordLine(**line)
            for line in self._lines.read()
            if line["what"] == what and tenant in (None, line["tenant"])
        ]

    def ended(self, tenant: str) -> int:
        """The number of distinct jobs of a tenant that ended."""
        return len({line.job for line in self.lines("end", tenant)})

    def until(self, condition: Callable[[], bool], seconds: float = TIMEOUT_SECONDS) -> None:
        try:
            eventually(condition, seconds)
        except AssertionError as error:
            logs = "\n".join(host.log[-3000:] for host in self.processes)
            raise AssertionError(f"{error}\n{logs}") from None

    def leased(self, tenant: str) -> int:
        return self.app.tenant(tenant)._client.store.counts().leased

    def live(self, tenant: str) -> int:
        """Jobs that are not finished."""
        counts = self.app.tenant(tenant)._client.store.counts()
        return sum(getattr(counts, field) for field in counts.__struct_fields__)

    def state(self, tenant: str) -> TenantState:
        return self.app.tenants.get(tenant).state

    def close(self) -> None:
        for host in self.processes:
            host.destroy()
        self.app.close()
