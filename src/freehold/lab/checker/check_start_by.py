"""No job starts after its time, and none that has started is canceled for being late."""

from __future__ import annotations

from collections.abc import Iterator

from freehold.lab.checker.indexed_history import IndexedHistory
from freehold.lab.checker.job_intervals import (
    JobIntervals,
    LeaseInterval,
    is_canceled_by_the_queue,
)
from freehold.lab.checker.violation import Violation
from freehold.model.history import EventKind
from freehold.model.timestamps import micros_of

_MICROS = 1_000_000


def late_jobs_never_start(history: IndexedHistory) -> Iterator[Violation]:
    for intervals, start_by in _with_start_by(history):
        for lease in _until_the_first_start(history, intervals):
            if lease.start >= start_by:
                late = (lease.start - start_by) / _MICROS
                text = f"was claimed {late:g} s after the time to start by"
                yield Violation("start_by", intervals.job.id, text, lease.start)


def started_jobs_are_not_late(history: IndexedHistory) -> Iterator[Violation]:
    start_bys = {intervals.job.id: at for intervals, at in _with_start_by(history)}
    for intervals in history.jobs.values():
        job_id, policy = intervals.job.id, intervals.job.policy
        if policy.node is not None or policy.in_group:
            continue  # the queue cancels them because of their sources
        for event in filter(is_canceled_by_the_queue, intervals.events):
            at = micros_of(event.at)
            if at < start_bys.get(job_id, at + 1):
                yield Violation("start_by", job_id, "was canceled as late too early", at)
            if any(key[0] == job_id and run.started.at < at for key, run in history.runs.items()):
                text = "was canceled as late after it had started"
                yield Violation("start_by", job_id, text, at)


def _with_start_by(history: IndexedHistory) -> Iterator[tuple[JobIntervals, int]]:
    """Jobs that were enqueued with a time to start by, and that time. The creation of some was
    never confirmed."""
    for invocation in history.invocations:
        call = invocation.request.call
        for index, asked in enumerate(invocation.request.info.get("jobs", ())):
            if asked.get("start_by") is None:
                continue
            seconds = asked["start_by"] + (asked.get("delay") or 0.0)
            for job_id in history.jobs_by_call.get(f"{call}.{index}", ()):
                intervals = history.jobs[job_id]
                yield intervals, intervals.created + round(seconds * _MICROS)


def _until_the_first_start(
    history: IndexedHistory, intervals: JobIntervals
) -> Iterator[LeaseInterval]:
    """Up to the lease in which a handler began, or may have; or until an operator's retry."""
    retried = [
        micros_of(event.at) for event in intervals.events if event.kind is EventKind.RETRIED_BY_HAND
    ]
    for lease in intervals.leases:
        if retried and lease.start >= retried[0]:
            return
        yield lease
        if lease.was_lost or (lease.job, lease.token) in history.runs:
            return
