"""N16: a bulk operation changes each of its jobs once, those that match, and ends."""

from __future__ import annotations

from collections.abc import Iterator

from freehold.lab.checker.indexed_history import IndexedHistory
from freehold.lab.checker.job_intervals import JobIntervals
from freehold.lab.checker.violation import Violation
from freehold.model.bulk import EVENTS, BulkOperation, BulkState
from freehold.model.history import TimelineEntry, timeline
from freehold.model.timestamps import micros_of


def bulk_operations_end(history: IndexedHistory) -> Iterator[Violation]:
    if history.faults.healed_at is None:
        return
    for operation in history.evidence.bulks:
        if operation.state is not BulkState.DONE or operation.left:
            text = f"bulk {operation.id} is {operation.state}, with {operation.left} jobs left"
            yield Violation("N16", 0, text)


def bulk_counts_are_true(history: IndexedHistory) -> Iterator[Violation]:
    for operation in history.evidence.bulks:
        changed = 0
        for intervals in history.jobs.values():
            events = [each for each in intervals.events if each.by == _author(operation)]
            changed += bool(events)
            if len(events) > 1:
                text = f"was changed {len(events)} times by bulk {operation.id}"
                yield Violation("N16", intervals.job.id, text)
        if changed != operation.done + operation.requested:
            counted = operation.done + operation.requested
            text = f"bulk {operation.id} counts {counted} changed jobs, and changed {changed}"
            yield Violation("N16", 0, text)


def bulk_changes_are_those_asked_for(history: IndexedHistory) -> Iterator[Violation]:
    """A job that matched all the time was changed, and one that did not match any more was not."""
    requested = {each.request.call: each.request.at for each in history.invocations}
    pending = _enqueued_as_pending(history)
    for operation in history.evidence.bulks:
        # Its set is read after the request, and stored a little later.
        asked = requested.get(operation.by, 0)
        for intervals in history.jobs.values():
            if operation.ended_at is not None and intervals.job.id not in pending:
                yield from _check_job(operation, intervals, asked, micros_of(operation.ended_at))


def _enqueued_as_pending(history: IndexedHistory) -> set[int]:
    """The timeline of a pending job that was canceled does not show that it was never queued."""
    return {
        job_id
        for each in history.invocations
        for index, job in enumerate(each.request.info.get("jobs", ()))
        if job.get("pending")
        for job_id in history.jobs_by_call.get(f"{each.request.call}.{index}", ())
    }


def _check_job(
    operation: BulkOperation, intervals: JobIntervals, asked: int, ended: int
) -> Iterator[Violation]:
    states, job_id = operation.filter["states"], intervals.job.id
    entries = timeline(intervals.job, list(intervals.events))
    mine = [each for each in entries if each.by == _author(operation)]
    others = [each for each in entries if each not in mine]
    if mine:
        before = [each for each in others if each.at <= mine[0].at]
        if not any(_public(each) in states for each in before[-2:]):
            text = f"was {before[-1].state} when bulk {operation.id} changed it"
            yield Violation("N16", job_id, text, micros_of(mine[0].at))
        return
    before = [each for each in others if micros_of(each.at) < asked]
    changes = any(asked <= micros_of(each.at) <= ended for each in others)
    if before and not changes and _public(before[-1]) in states and not operation.refused:
        verb = EVENTS[operation.verb][0]
        text = f"was {before[-1].state} all the time, and not {verb} by bulk {operation.id}"
        yield Violation("N16", job_id, text, ended)


def _public(entry: TimelineEntry) -> str:
    return entry.state.value


def _author(operation: BulkOperation) -> str:
    return f"{operation.by} (bulk {operation.id})"
