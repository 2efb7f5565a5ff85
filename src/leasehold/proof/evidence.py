"""Everything that a checker may look at: records, and what the store says at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leasehold.model.history import Event
from leasehold.model.job import Job
from leasehold.proof.record import Record
from leasehold.store.faces import BlockingStore


@dataclass(frozen=True, slots=True)
class Evidence:
    records: Sequence[Record]
    jobs: Mapping[int, Job]
    events: Mapping[int, Sequence[Event]]
    #: How many jobs with a limit key may be live at once.
    limits: Mapping[str, int]
    #: A store with transactions tells when something was written, not when others could see it:
    #: that may be as much later.
    commit_lag_micros: int = 0


def gather(
    store: BlockingStore,
    ids: Sequence[int],
    records: Sequence[Record],
    limits: Mapping[str, int],
) -> Evidence:
    """Through the store's read verbs, as anybody would read it."""
    jobs = store.read(ids)
    events = {job_id: store.events(job_id) for job_id in sorted(jobs)}
    return Evidence(records, jobs, events, limits)
