"""What a storm has brought about so far, read from the books and the store while it goes on.

A storm that ends by the clock has brought about less on a slow machine, and now and then nothing
of what is to be judged. So the plan can name what must have happened, and the faults end only
when it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from freehold.lab.checker.record import Record
from freehold.model.history import Event, EventKind
from freehold.model.state import FINAL

#: Names beside those of the faults.
JOBS = "jobs"
RUN_AGAIN = "run again after a lost lease"
GHOSTS_REJECTED = "stale writes of ghosts rejected"


def progress(events: Iterable[Event], records: Iterable[Record]) -> Counter[str]:
    jobs: set[int] = set()
    started: dict[int, int] = {}
    runs: set[tuple[int, int]] = set()
    for record in records:
        if record.what == "started":
            runs.add((record.job, record.token))
            started[record.job] = max(record.token, started.get(record.job, 0))
        elif record.what == "told":
            jobs.update(job_id for job_id, _created in record.info.get("answers", ()))
    lost = (event for event in events if event.kind is EventKind.LEASE_LOST)
    again = sum(
        event.state not in FINAL
        and (event.job_id, event.token) in runs
        and started[event.job_id] > (event.token or 0)
        for event in lost
    )
    return Counter({JOBS: len(jobs), RUN_AGAIN: again})
