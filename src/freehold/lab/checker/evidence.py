"""Everything that a checker may look at: records, and what the store says at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from freehold.lab.checker.record import Record
from freehold.model.history import Event
from freehold.model.job import Job
from freehold.model.limit import Limit
from freehold.store.store import Store


@dataclass(frozen=True, slots=True)
class Evidence:
    records: Sequence[Record]
    jobs: Mapping[int, Job]
    events: Mapping[int, Sequence[Event]]
    #: By limit key, or class of keys.
    limits: Mapping[str, Limit] = field(default_factory=dict)
    queue_limits: Mapping[str, Limit] = field(default_factory=dict)
    #: How long a lease holds at least that nobody renews.
    lease_micros: int = 0
    #: A store with transactions tells when something was written, not when others could see it:
    #: that may be as much later.
    commit_lag_micros: int = 0
    #: Whose store it is, where there are several.
    tenant: str | None = None


def gather(
    store: Store,
    ids: Sequence[int],
    records: Sequence[Record],
    limits: Mapping[str, Limit],
    queue_limits: Mapping[str, Limit],
    lease_seconds: float,
    tenant: str | None = None,
) -> Evidence:
    """Through the store's read verbs, as anybody would read it."""
    jobs = store.read(ids)
    events = {job_id: store.events(job_id) for job_id in sorted(jobs)}
    lease_micros = round(lease_seconds * 1_000_000)
    return Evidence(records, jobs, events, limits, queue_limits, lease_micros, tenant=tenant)
