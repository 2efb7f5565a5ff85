"""The oracle's table: jobs, their events and their lanes, and how one job changes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from freehold.model.history import Event, EventKind
from freehold.model.job import Attempt, ErrorInfo, Job, Lease, Report
from freehold.model.state import HOLDS_LANE, LEASED, Stage, State, state_of

READY = (Stage.READY, Stage.LANE_HEAD)
LANE_CANDIDATES = (Stage.READY, Stage.FOLLOWER, Stage.PAUSED_FOLLOWER)
TIMED = (Stage.SCHEDULED, Stage.BACKOFF)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change of one job: by an owner's outcome, an expired lease, or an operator."""

    state: State
    event: EventKind
    stages: tuple[Stage, Stage] | None
    by: str | None
    reason: str | None
    run_at: datetime | None = None
    error: ErrorInfo | None = None
    result: Any = None
    refund: int = 0
    lost_attempts: int = 0
    fresh: bool = False
    keeps_start_by: bool = True
    keeps_run_at: bool = False
    waits_for: str | None = None


def seconds(value: float) -> timedelta:
    return timedelta(microseconds=round(value * 1_000_000))


class Table:
    def __init__(self, now: datetime) -> None:
        self.now = now
        self.jobs: dict[int, Job] = {}
        self.events: dict[int, list[Event]] = {}
        self.due: dict[int, datetime | None] = {}  # None: at once
        self.parked_until: dict[int, datetime] = {}  # of misfits
        self.broken: dict[int, bool] = {}  # whether such a row must not be paused either

    def live(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.stage is not None]

    def set_stage(self, job: Job, stage: Stage, **fields: Any) -> Job:
        moved = replace(job, stage=stage, **fields)
        started = moved.lease is not None and moved.lease.started_at is not None
        self.jobs[job.id] = replace(moved, state=state_of(stage, started))
        return self.jobs[job.id]

    def add_event(
        self, job: Job, kind: EventKind, state: State, by: str | None, reason: str | None
    ) -> None:
        self.append_event(
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

    def append_event(self, event: Event) -> None:
        self.events[event.job_id].append(event)

    def change(self, job: Job, change: Change) -> None:
        """Moves a live job to another stage or finishes it. The event contains the lease."""
        lease = job.lease
        due = change.run_at if change.state is State.QUEUED else None
        if change.event is not EventKind.SUCCEEDED:
            self.append_event(
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
        attempt, lost = job.attempt - change.refund, job.lost_attempts + change.lost_attempts
        bare = replace(
            job,
            lease=None,
            stop_request=None,
            stop_requested_by=None,
            stop_request_reason=None,
            attempt=0 if change.fresh else attempt,
            lost_attempts=0 if change.fresh else lost,
            waiting_key=None if lease or change.stages is None else job.waiting_key,
            start_by=job.start_by if change.keeps_start_by and change.stages else None,
            waits_for=job.waits_for if change.keeps_run_at else change.waits_for,
        )
        if change.stages is None:
            self.finish_job(bare, lease, change)
        else:
            later = change.run_at is not None and change.run_at > self.now
            self.requeue(bare, change.stages[later], change)

    def requeue(self, job: Job, stage: Stage, change: Change) -> None:
        if stage is not Stage.PARKED:
            self.parked_until.pop(job.id, None)
        self.due[job.id] = change.run_at
        run_at = change.run_at or job.created_at
        self.set_stage(job, stage, run_at=run_at, reason=change.reason)

    def finish_job(self, job: Job, lease: Lease | None, change: Change) -> None:
        leased = lease.leased_at if lease else None
        started = lease.started_at if lease else None
        began = started or leased
        report = Report(
            state=change.state,
            finished_at=self.now,
            attempts=job.attempt,
            result=change.result,
            error=change.error,
            finished_by=change.by,
            token=lease.token if lease else None,
            leased_at=leased,
            started_at=started,
            waited_seconds=(began - job.created_at).total_seconds() if began else None,
            ran_seconds=(self.now - started).total_seconds() if started else None,
        )
        self.jobs[job.id] = replace(
            job,
            stage=None,
            state=change.state,
            reason=change.reason,
            report=report,
            waits_for=None,
        )

    def promote(self, targets: Iterable[str | None]) -> None:
        """Gives every free lane its next holder; runs after every ending in a lane."""
        for target in set(targets) - {None}:
            first = self.next_in(str(target))
            if first is not None:
                paused = first.stage is Stage.PAUSED_FOLLOWER
                self.set_stage(first, Stage.PAUSED if paused else Stage.LANE_HEAD)

    def next_in(self, target: str) -> Job | None:
        """The next holder of a free lane: its oldest candidate. None if the lane is held."""
        lane = [job for job in self.live() if job.target == target]
        if any(job.stage in HOLDS_LANE for job in lane):
            return None
        return min(
            (job for job in lane if job.stage in LANE_CANDIDATES), key=lambda j: j.id, default=None
        )


def with_followers(jobs: dict[int, Job]) -> dict[int, Job]:
    """Jobs with the stage that the oracle gives them. In a lane, every job but the next is a
    follower; a store may leave it ready until a claim reads it. The next must not be a follower."""
    lanes: dict[str, list[Job]] = {}
    for job in jobs.values():
        if job.target is not None and job.stage is not None:
            lanes.setdefault(job.target, []).append(job)
    seen = dict(jobs)
    for lane in lanes.values():
        held = any(job.stage in HOLDS_LANE for job in lane)
        first = min((job.id for job in lane if job.stage in LANE_CANDIDATES), default=None)
        for job in lane:
            if job.stage is Stage.READY and (held or job.id != first):
                seen[job.id] = replace(job, stage=Stage.FOLLOWER)
    return seen


def attempt_of(job: Job, misfit_time_is_over: bool = False) -> Attempt:
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
        job.lost_attempts,
        job.priority,
        job.target,
        job.timeout_seconds,
        job.policy_json,
        misfit_time_is_over=misfit_time_is_over,
        meta_json=msgspec.json.encode(job.meta).decode() if job.meta else None,
    )


def unpacked(job: Job) -> dict[str, Any]:
    """The policy as it is stored."""
    return msgspec.json.decode(job.policy_json or "{}", type=dict[str, Any])
