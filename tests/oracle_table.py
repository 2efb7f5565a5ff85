"""The oracle's table: jobs, their events and their lanes, and how one job changes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from freehold.model.history import Event, EventKind
from freehold.model.job import Attempt, Error, Job, Lease, Report
from freehold.model.state import HOLDS_LANE, LEASED, Stage, State, state_of

READY = (Stage.READY, Stage.HEAD)
QUEUING = (Stage.READY, Stage.FOLLOWER, Stage.FOLLOWER_PAUSED)
TIMED = (Stage.WAITING, Stage.BACKOFF)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to one job: by an owner's outcome, an expiry, or an operator's word."""

    state: State
    event: EventKind
    stages: tuple[Stage, Stage] | None
    by: str | None
    reason: str | None
    run_at: datetime | None = None
    error: Error | None = None
    result: Any = None
    refund: int = 0
    lost: int = 0
    fresh: bool = False


def seconds(value: float) -> timedelta:
    return timedelta(microseconds=round(value * 1_000_000))


class Table:
    def __init__(self, now: datetime) -> None:
        self.now = now
        self.jobs: dict[int, Job] = {}
        self.events: dict[int, list[Event]] = {}
        self.due: dict[int, datetime | None] = {}  # None: at once

    def live(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.stage is not None]

    def put(self, job: Job, stage: Stage, **fields: Any) -> Job:
        moved = replace(job, stage=stage, **fields)
        started = moved.lease is not None and moved.lease.started_at is not None
        self.jobs[job.id] = replace(moved, state=state_of(stage, started))
        return self.jobs[job.id]

    def tell(
        self, job: Job, kind: EventKind, state: State, by: str | None, reason: str | None
    ) -> None:
        self.keep(
            Event(
                0,
                job.id,
                self.now,
                kind,
                state,
                job.attempt,
                by,
                reason,
                None,
                None,
                None,
                None,
                None,
            )
        )

    def keep(self, event: Event) -> None:
        self.events[event.job_id].append(event)

    def change(self, job: Job, change: Change) -> None:
        """A live job goes to another stage or leaves; what ended an attempt tells its lease."""
        lease = job.lease
        due = change.run_at if change.state is State.QUEUED else None
        if change.event is not EventKind.SUCCEEDED:
            self.keep(
                Event(
                    0,
                    job.id,
                    self.now,
                    change.event,
                    change.state,
                    job.attempt,
                    change.by,
                    change.reason,
                    change.error,
                    lease.token if lease else None,
                    lease.leased_at if lease else None,
                    lease.started_at if lease else None,
                    due,
                )
            )
        attempt, lost = job.attempt - change.refund, job.lost + change.lost
        bare = replace(
            job,
            lease=None,
            request=None,
            request_by=None,
            request_reason=None,
            attempt=0 if change.fresh else attempt,
            lost=0 if change.fresh else lost,
        )
        if change.stages is None:
            self.leave(bare, lease, change)
        else:
            later = change.run_at is not None and change.run_at > self.now
            self.back(bare, change.stages[later], change)

    def back(self, job: Job, stage: Stage, change: Change) -> None:
        self.due[job.id] = change.run_at
        run_at = change.run_at or job.created_at
        self.put(job, stage, run_at=run_at, reason=change.reason)

    def leave(self, job: Job, lease: Lease | None, change: Change) -> None:
        leased = lease.leased_at if lease else None
        started = lease.started_at if lease else None
        began = started or leased
        report = Report(
            state=change.state,
            finished_at=self.now,
            attempts=job.attempt,
            result=change.result,
            error=change.error,
            by=change.by,
            token=lease.token if lease else None,
            leased_at=leased,
            started_at=started,
            waited_seconds=(began - job.created_at).total_seconds() if began else None,
            ran_seconds=(self.now - started).total_seconds() if started else None,
        )
        self.jobs[job.id] = replace(
            job, stage=None, state=change.state, reason=change.reason, report=report
        )

    def promote(self, targets: Iterable[str | None]) -> None:
        """Whoever ends something in a lane sees to it that a free lane gets its next holder."""
        for target in set(targets) - {None}:
            first = self.next_in(str(target))
            if first is not None:
                paused = first.stage is Stage.FOLLOWER_PAUSED
                self.put(first, Stage.PAUSED if paused else Stage.HEAD)

    def next_in(self, target: str) -> Job | None:
        """Who takes a free lane: the oldest that queues for it. Nobody, if it is held."""
        lane = [job for job in self.live() if job.target == target]
        if any(job.stage in HOLDS_LANE for job in lane):
            return None
        return min((job for job in lane if job.stage in QUEUING), key=lambda j: j.id, default=None)


def settled(jobs: dict[int, Job]) -> dict[int, Job]:
    """Jobs as they stand in truth. In a lane, whoever is not next follows; a store may leave it
    among the ready until a claim meets it. One that is next must never be left a follower."""
    lanes: dict[str, list[Job]] = {}
    for job in jobs.values():
        if job.target is not None and job.stage is not None:
            lanes.setdefault(job.target, []).append(job)
    seen = dict(jobs)
    for lane in lanes.values():
        held = any(job.stage in HOLDS_LANE for job in lane)
        first = min((job.id for job in lane if job.stage in QUEUING), default=None)
        for job in lane:
            if job.stage is Stage.READY and (held or job.id != first):
                seen[job.id] = replace(job, stage=Stage.FOLLOWER)
    return seen


def attempt_of(job: Job) -> Attempt:
    assert job.lease is not None
    assert job.state in LEASED
    return Attempt(
        job.id,
        job.lease.owner,
        job.lease.token,
        job.task,
        job.queue,
        job.args,
        job.attempt,
        job.max_attempts,
        job.lost,
        job.priority,
        job.target,
        job.timeout_seconds,
        job.policy_json,
    )
