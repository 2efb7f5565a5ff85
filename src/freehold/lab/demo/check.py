"""Checks the demo's result: compares the store with the records of the handlers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from freehold.lab.demo.handler_log import HandlerRecord
from freehold.lab.demo.tasks import PREFIX
from freehold.model.history import Event, EventKind
from freehold.model.job import Job
from freehold.model.simulated_kind import SimulatedKind
from freehold.model.state import FINAL, State

_EXPECTED = {"succeed": State.SUCCEEDED, "fail": State.FAILED, "cancel": State.CANCELED}
#: Events that explain a second start.
_CAUSES = frozenset(
    {EventKind.RETRIED, EventKind.LEASE_LOST, EventKind.GIVEN_BACK, EventKind.DRAINED}
)


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the check. All lists should be empty."""

    jobs: int
    states: dict[str, int]
    attempts: int
    retried: int
    recovered: int
    lanes: int
    #: Missing in the store, or not ended.
    lost: list[int]
    #: Ended in another state than their kind should.
    wrong: list[int]
    #: Ended according to the store, but no handler has recorded that.
    unrecorded: list[int]
    #: Started again without an event that explains it.
    unexplained: list[int]
    disordered_lanes: list[str]

    @property
    def good(self) -> bool:
        return not (
            self.lost or self.wrong or self.unrecorded or self.unexplained or self.disordered_lanes
        )


def started_again(records: Iterable[HandlerRecord]) -> dict[int, int]:
    """Jobs that started more than once, with the number of starts."""
    starts = Counter(record.job for record in records if record.event == "started")
    return {job: count for job, count in starts.items() if count > 1}


def check(
    ids: Sequence[int],
    targets: Mapping[int, str],
    kinds: Mapping[str, SimulatedKind],
    jobs: Mapping[int, Job],
    events: Mapping[int, Sequence[Event]],
    records: Sequence[HandlerRecord],
) -> Check:
    """``targets``: the requested lanes; ``events``: of all jobs that started more than once."""
    ended = {job.id: job for job in jobs.values() if job.state in FINAL}
    recorded = {(record.job, record.event) for record in records}
    lanes = _lanes(targets, records)
    stored = [event for many in events.values() for event in many]
    return Check(
        jobs=len(ids),
        states=dict(Counter(str(job.state) for job in jobs.values())),
        attempts=sum(record.event == "started" for record in records),
        retried=sum(event.kind is EventKind.RETRIED for event in stored),
        recovered=len({event.job_id for event in stored if event.kind is EventKind.LEASE_LOST}),
        lanes=len(lanes),
        lost=[job_id for job_id in ids if job_id not in ended],
        wrong=[job.id for job in ended.values() if job.state is not _expected(job, kinds)],
        unrecorded=[job.id for job in ended.values() if (job.id, str(job.state)) not in recorded],
        unexplained=[
            job_id
            for job_id, starts in started_again(records).items()
            if starts > 1 + sum(event.kind in _CAUSES for event in events.get(job_id, ()))
        ],
        disordered_lanes=[target for target, lane in lanes.items() if not _in_order(lane)],
    )


def _expected(job: Job, kinds: Mapping[str, SimulatedKind]) -> State:
    return _EXPECTED[kinds[job.task.removeprefix(PREFIX)].outcome]


def _lanes(
    targets: Mapping[int, str], records: Sequence[HandlerRecord]
) -> dict[str, list[HandlerRecord]]:
    """The records of each lane, in order."""
    lanes: dict[str, list[HandlerRecord]] = {target: [] for target in targets.values()}
    for record in records:
        if (target := targets.get(record.job)) is not None:
            lanes[target].append(record)
    return lanes


def _in_order(records: Sequence[HandlerRecord]) -> bool:
    """No job starts before an older one, or while another job of its lane is running."""
    latest, open_job = 0, None
    for record in records:
        if record.event == "started":
            if record.job < latest or open_job not in (None, record.job):
                return False
            latest = open_job = record.job
        elif open_job == record.job:
            open_job = None
    return True
