"""S4.2: what a tenant enqueued is in its own store, and runs in its own name."""

from __future__ import annotations

from collections.abc import Iterator

from freehold.lab.checker.indexed_history import IndexedHistory
from freehold.lab.checker.violation import Violation


def nothing_crosses(case: IndexedHistory) -> Iterator[Violation]:
    """Names of calls begin with whose they are; records are the book of the tenant in whose name
    the handler ran."""
    tenant = case.evidence.tenant
    if tenant is None:
        return
    for call, jobs in case.made.items():
        if not call.startswith(f"{tenant}:"):
            yield Violation("S4.2", jobs[0], f"is stored with {tenant}, but came of {call}")
    for record in case.evidence.records:
        if record.what == "started" and record.job not in case.made.get(record.info["made_by"], ()):
            text = f"ran in the name of {tenant} with the arguments of {record.info['made_by']}"
            yield Violation("S4.2", record.job, text, record.at)
