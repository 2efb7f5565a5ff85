"""What became of the load: what the store says, beside what the handlers themselves said."""

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
#: Why a job may start a second time.
_CAUSES = frozenset(
    {EventKind.RETRIED, EventKind.LEASE_LOST, EventKind.GIVEN_BACK, EventKind.DRAINED}
)


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """What the demo found at its end. Of the lists of ids, all should be empty."""

    jobs: int
    states: dict[str, int]
    attempts: int
    retried: int
    recovered: int
    lanes: int
    #: Not in the store any more, or not ended.
    lost: list[int]
    #: Ended, but not as their kind ends.
    wrong: list[int]
    #: The store says that they ended, and no handler has said so.
    unheard: list[int]
    #: Started a second time, and their history does not say why.
    unexplained: list[int]
    disordered_lanes: list[str]

    @property
    def good(self) -> bool:
        return not (
            self.lost or self.wrong or self.unheard or self.unexplained or self.disordered_lanes
        )


def again(lines: Iterable[HandlerRecord]) -> dict[int, int]:
    """Jobs that started more than once, and how often: their events must say why."""
    starts = Counter(line.job for line in lines if line.word == "started")
    return {job: count for job, count in starts.items() if count > 1}


def check(
    ids: Sequence[int],
    targets: Mapping[int, str],
    kinds: Mapping[str, SimulatedKind],
    jobs: Mapping[int, Job],
    events: Mapping[int, Sequence[Event]],
    lines: Sequence[HandlerRecord],
) -> Check:
    """``targets`` are the lanes as they were asked for; ``events`` those of all that ran twice."""
    ended = {job.id: job for job in jobs.values() if job.state in FINAL}
    heard = {(line.job, line.word) for line in lines}
    lanes = _lanes(targets, lines)
    kept = [event for many in events.values() for event in many]
    return Check(
        jobs=len(ids),
        states=dict(Counter(str(job.state) for job in jobs.values())),
        attempts=sum(line.word == "started" for line in lines),
        retried=sum(event.kind is EventKind.RETRIED for event in kept),
        recovered=len({event.job_id for event in kept if event.kind is EventKind.LEASE_LOST}),
        lanes=len(lanes),
        lost=[job_id for job_id in ids if job_id not in ended],
        wrong=[job.id for job in ended.values() if job.state is not _expected(job, kinds)],
        unheard=[job.id for job in ended.values() if (job.id, str(job.state)) not in heard],
        unexplained=[
            job_id
            for job_id, starts in again(lines).items()
            if starts > 1 + sum(event.kind in _CAUSES for event in events.get(job_id, ()))
        ],
        disordered_lanes=[target for target, said in lanes.items() if not _in_order(said)],
    )


def _expected(job: Job, kinds: Mapping[str, SimulatedKind]) -> State:
    return _EXPECTED[kinds[job.task.removeprefix(PREFIX)].outcome]


def _lanes(
    targets: Mapping[int, str], lines: Sequence[HandlerRecord]
) -> dict[str, list[HandlerRecord]]:
    """What was said in each lane, in order."""
    lanes: dict[str, list[HandlerRecord]] = {target: [] for target in targets.values()}
    for line in lines:
        if (target := targets.get(line.job)) is not None:
            lanes[target].append(line)
    return lanes


def _in_order(said: Sequence[HandlerRecord]) -> bool:
    """No job starts before an older one, or while another one of its lane has not ended."""
    latest, open_job = 0, None
    for line in said:
        if line.word == "started":
            if line.job < latest or open_job not in (None, line.job):
                return False
            latest = open_job = line.job
        elif open_job == line.job:
            open_job = None
    return True
