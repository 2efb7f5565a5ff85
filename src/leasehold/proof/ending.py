"""I9, and what else must hold once all faults are over: everything ends, and nobody broke."""

from __future__ import annotations

from collections.abc import Iterator

from leasehold.model.state import FINAL
from leasehold.proof.case import Case
from leasehold.proof.violation import Violation


def everything_ends(case: Case) -> Iterator[Violation]:
    if case.troubles.healed_at is None:
        return
    for life in case.lives.values():
        job = life.job
        if job.state not in FINAL or job.stage is not None:
            where = f"stage {job.stage}" + (f", leased by {job.lease.owner}" if job.lease else "")
            yield Violation("I9", job.id, f"has not ended: it is {job.state} ({where})")


def nobody_waits(case: Case) -> Iterator[Violation]:
    """I9: no job that can be claimed waits for long while a slot is free."""
    told: set[int] = set()
    for record in case.evidence.records:
        if record.what == "waits" and record.job not in told:
            told.add(record.job)
            seconds = record.info["seconds"]
            yield Violation("I9", record.job, f"waits for {seconds:g} s while a slot is free")


def nobody_breaks(case: Case) -> Iterator[Violation]:
    for record in case.evidence.records:
        if record.what == "exited" and record.info["code"] != 0:
            yield Violation("crash", 0, f"{record.who} ended with {record.info['code']}", record.at)
