"""The demo's load, and what must have become of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from leasehold.app import Leasehold
from leasehold.kinds import PREFIX
from leasehold.model.history import EventKind
from leasehold.model.job import Job, NewJob
from leasehold.model.state import FINAL, State

LANES = 12
#: kind -> share of the plain jobs
_MIX = {"quick": 0.5, "steady": 0.3, "flaky": 0.15, "broken": 0.03, "refusing": 0.02}
_EXPECTED = {
    "quick": State.SUCCEEDED,
    "steady": State.SUCCEEDED,
    "flaky": State.SUCCEEDED,
    "broken": State.FAILED,
    "refusing": State.CANCELED,
}


class Check(msgspec.Struct, frozen=True):
    """What the demo found at its end."""

    jobs: int
    states: dict[str, int]
    unfinished: list[int]
    wrong: list[int]
    retried: int
    recovered: int
    lanes: int
    lane_overlaps: int

    @property
    def good(self) -> bool:
        return not (self.unfinished or self.wrong or self.lane_overlaps)


def prepare(app: Leasehold, count: int) -> list[NewJob]:
    """Plain jobs of all kinds, and a third of them again in lanes."""
    jobs: list[NewJob] = []
    for kind, share in _MIX.items():
        task = app.tasks.get(PREFIX + kind)
        jobs += [task.prepare(number) for number in range(round(count * share))]
    quick = app.tasks.get(PREFIX + "quick")
    for number in range(count // 3):
        jobs.append(quick.using(target=f"account-{number % LANES}").prepare(f"lane {number}"))
    # Deal the kinds out like cards, so that all of them run all the time.
    step = max(1, len(jobs) // 50)
    return [jobs[index] for start in range(step) for index in range(start, len(jobs), step)]


def check(app: Leasehold, ids: Sequence[int]) -> Check:
    """Read every job back from the store and judge it."""
    jobs = app.client.store.read(ids)
    states = Counter(str(job.state) for job in jobs.values())
    unfinished = [i for i in ids if i not in jobs or jobs[i].state not in FINAL]
    wrong = [
        i
        for i, job in jobs.items()
        if job.state in FINAL and job.state is not _EXPECTED[job.task.removeprefix(PREFIX)]
    ]
    retried = recovered = 0
    for job_id in ids:
        for event in app.client.store.events(job_id):
            retried += event.kind is EventKind.RETRIED
            recovered += event.kind is EventKind.LEASE_LOST
    return Check(
        jobs=len(ids),
        states=dict(states),
        unfinished=unfinished,
        wrong=wrong,
        retried=retried,
        recovered=recovered,
        lanes=LANES,
        lane_overlaps=_overlaps(jobs.values()),
    )


def _overlaps(jobs: Iterable[Job]) -> int:
    """Two jobs of one lane that ran at the same time, or out of order."""
    lanes: dict[str, list[Job]] = {}
    for job in jobs:
        if job.target is not None and job.report is not None:
            lanes.setdefault(job.target, []).append(job)
    return sum(
        _overlap(before, after)
        for lane in lanes.values()
        for before, after in pairwise(sorted(lane, key=lambda job: job.id))
    )


def _overlap(before: Job, after: Job) -> bool:
    assert before.report is not None
    assert after.report is not None
    began = after.report.leased_at
    return began is not None and began < before.report.finished_at
