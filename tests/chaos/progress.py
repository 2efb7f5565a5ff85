"""What has happened in a run so far, read from its records and the store while it continues.

On a slow machine less happens in the same time, and sometimes nothing that the judge could check.
So the plan can list what must have happened, and the faults end only after that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from freehold.lab.checker.record import Record
from freehold.model.history import Event, EventKind
from freehold.model.state import FINAL

#: Names in addition to those of the faults.
JOBS = "jobs"
RUN_AGAIN = "run again after a lost lease"
FLOWS = "batches and workflows stored"
GHOSTS_REJECTED = "stale writes of ghosts rejected"


def progress(events: Iterable[Event], records: Iterable[Record]) -> Counter[str]:
    jobs: set[int] = set()
    started: dict[int, int] = {}
    runs: set[tuple[int, int]] = set()
    flows = 0
    for record in records:
        if record.kind == "started":
            runs.add((record.job, record.token))
            started[record.job] = max(record.token, started.get(record.job, 0))
        elif record.kind == "responded":
            jobs.update(job_id for job_id, _created in record.info.get("results", ()))
            flows += record.info["verb"] == "flow" and "flow" in record.info
    lost = (event for event in events if event.kind is EventKind.LEASE_LOST)
    again = sum(
        event.state not in FINAL
        and (event.job_id, event.token) in runs
        and started[event.job_id] > (event.token or 0)
        for event in lost
    )
    return Counter({JOBS: len(jobs), FLOWS: flows, RUN_AGAIN: again})
