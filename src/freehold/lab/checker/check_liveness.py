"""I9: after the last fault every job ends, no claimable job waits, and no worker has crashed."""

from __future__ import annotations

from collections.abc import Iterator

from freehold.lab.checker.indexed_history import IndexedHistory
from freehold.lab.checker.violation import Violation
from freehold.model.state import FINAL


def everything_ends(history: IndexedHistory) -> Iterator[Violation]:
    if history.faults.healed_at is None:
        return
    for intervals in history.jobs.values():
        job = intervals.job
        if job.state not in FINAL or job.stage is not None:
            where = f"stage {job.stage}" + (f", leased by {job.lease.owner}" if job.lease else "")
            yield Violation("I9", job.id, f"has not ended; it is {job.state} ({where})")


def no_idle_slot_beside_ready_jobs(history: IndexedHistory) -> Iterator[Violation]:
    """I9: no claimable job waits for long while a slot is free."""
    reported: set[int] = set()
    for record in history.evidence.records:
        if record.kind == "waits" and record.job not in reported:
            reported.add(record.job)
            seconds = record.info["seconds"]
            yield Violation("I9", record.job, f"waited for {seconds:g} s while a slot was free")


def no_part_crashes(history: IndexedHistory) -> Iterator[Violation]:
    for record in history.evidence.records:
        if record.kind == "exited" and record.info["code"] != 0:
            yield Violation(
                "crash", 0, f"{record.actor} exited with code {record.info['code']}", record.at
            )
