"""Ids and tokens that were given twice, read from the records of producers and workers.

With asynchronous replication a promotion loses acknowledged jobs, so that the store at the end
cannot be compared with all records. The numbers can.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from freehold.lab.checker.record import Record


def numbers_given_twice(records: Iterable[Record]) -> Iterator[str]:
    calls: dict[int, str] = {}
    owners: dict[int, str] = {}
    starts: set[tuple[int, int]] = set()
    for record in records:
        if record.kind == "responded":
            for index, (job_id, created) in enumerate(record.info.get("results", ())):
                call = f"{record.call}.{index}"
                if created and calls.setdefault(job_id, call) != call:
                    yield f"id {job_id} was given to {calls[job_id]} and to {call}"
        elif record.kind == "started":
            owner = record.info["owner"]
            if owners.setdefault(record.token, owner) != owner:
                yield f"token {record.token} was given to {owners[record.token]} and to {owner}"
            if (record.job, record.token) in starts:
                yield f"job {record.job} was started twice with token {record.token}"
            starts.add((record.job, record.token))


def lost_jobs(records: Iterable[Record], stored: Iterable[int]) -> int:
    """How many of the jobs that producers know to be created are not in the store."""
    acknowledged = {
        job_id
        for record in records
        if record.kind == "responded"
        for job_id, created in record.info.get("results", ())
        if created
    }
    return len(acknowledged - set(stored))
