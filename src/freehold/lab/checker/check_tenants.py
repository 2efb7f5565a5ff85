"""S4.2: the jobs of a tenant are in its own store, and run with it as their tenant."""

from __future__ import annotations

from collections.abc import Iterator

from freehold.lab.checker.indexed_history import IndexedHistory
from freehold.lab.checker.violation import Violation


def nothing_crosses(history: IndexedHistory) -> Iterator[Violation]:
    """The name of a call begins with its tenant. Each tenant has its own records, written by the
    handlers that ran for it."""
    tenant = history.evidence.tenant
    if tenant is None:
        return
    for call, jobs in history.jobs_by_call.items():
        if not call.startswith(f"{tenant}:"):
            yield Violation("S4.2", jobs[0], f"is in the store of {tenant}, but {call} enqueued it")
    for record in history.evidence.records:
        if record.kind == "started" and record.job not in history.jobs_by_call.get(
            record.info["made_by"], ()
        ):
            text = f"ran for tenant {tenant} with the arguments of {record.info['made_by']}"
            yield Violation("S4.2", record.job, text, record.at)
