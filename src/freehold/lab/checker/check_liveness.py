"""I9, and what else must hold once all faults are over: everything ends, and nobody broke."""

from __future__ import annotations

from collections.abc import Iterator

from freehold.lab.checker.indexed_history import IndexedHistory
from freehold.lab.checker.violation import Violation
from freehold.model.state import FINAL


def everything_ends(case: IndexedHistory) -> Iterator[Violation]:
    if case.troubles.healed_at is None:
        return
    for life in case.lives.values():
        job = life.job
        if job.state not in FINAL or job.stage is not None:
            where = f"stage {job.stage}" + (f", leased by {job.lease.owner}" if job.lease else "")
            yield Violation("I9", job.id, f"has not ended: it is {job.state} ({where})")


def no_idle_slot_beside_ready_jobs(case: IndexedHistory) -> Iterator[Violation]:
    """I9: no job that can be claimed waits for long while a slot is free."""
    told: set[int] = set()
    for record in case.evidence.records:
        if record.what == "waits" and record.job not in told:
            told.add(record.job)
            seconds = record.info["seconds"]
            yield Violation("I9", record.job, f"waits for {seconds:g} s while a slot is free")


def no_part_crashes(case: IndexedHistory) -> Iterator[Violation]:
    for record in case.evidence.records:
        if record.what == "exited" and record.info["code"] != 0:
            yield Violation("crash", 0, f"{record.who} ended with {record.info['code']}", record.at)
