"""N4: one job waits with a key; the last call gives its values; debounce and throttle keep their
times."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec

from freehold.lab.checker.indexed_history import IndexedHistory, Invocation
from freehold.lab.checker.job_intervals import JobIntervals, live_spans
from freehold.lab.checker.violation import Violation
from freehold.model.timestamps import micros_of

_MICROS = 1_000_000
#: Stored times are rounded to the microsecond.
_ROUNDING = 2


def one_job_waits_with_a_key(history: IndexedHistory) -> Iterator[Violation]:
    for key, jobs in _by_key(history).items():
        spans = sorted((each.created, _taken(each), each.job.id) for each in jobs)
        for (_, end, first), (start, _, second) in pairwise(spans):
            if start < end:
                text = f"waited beside job {first}; both have the key {key}"
                yield Violation("N4", second, text, start)


def the_last_call_gives_the_values(history: IndexedHistory) -> Iterator[Violation]:
    """A job has the arguments of a call that none of its other calls came wholly after."""
    for job_id, calls in _calls_of_jobs(history).items():
        args = msgspec.json.decode(history.jobs[job_id].job.args)["call"]
        given = [each for each in calls if each[1] == args]
        for invocation, name, asked in calls:
            response = invocation.response
            if not asked["replaces"] or response is None or "error" in response.info or not given:
                continue
            last = max(each.may_act_until for each, _, _ in given)
            if name != args and last < invocation.request.at:
                text = f"has the arguments of {args}, and {name} came after it"
                yield Violation("N4", job_id, text)


def debounced_jobs_wait(history: IndexedHistory) -> Iterator[Violation]:
    """From the last call that was confirmed, but no longer than the longest wait."""
    for job_id, calls in _calls_of_jobs(history).items():
        intervals = history.jobs[job_id]
        taken = _taken(intervals)
        if not intervals.leases or _was_moved(intervals):
            continue
        for invocation, name, asked in calls:
            response, seconds = invocation.response, asked.get("debounce")
            if seconds is None or response is None or "error" in response.info:
                continue
            latest = intervals.created + round(asked["at_most"] * _MICROS)
            due = min(invocation.request.at + round(seconds * _MICROS), latest)
            if taken < due - _ROUNDING:
                early = (due - taken) / _MICROS
                yield Violation("N4", job_id, f"ran {early:g} s too early for {name}", taken)


def throttled_jobs_are_apart(history: IndexedHistory) -> Iterator[Violation]:
    """Each is due when it is stored, or at the end of the window of the job before."""
    calls = _calls_of_jobs(history)
    for key, jobs in _by_key(history).items():
        asked = [asked for each in jobs for _, _, asked in calls.get(each.job.id, ())]
        seconds = max((each["throttle"] or 0.0 for each in asked), default=0.0)
        due = 0
        for intervals in sorted(jobs, key=lambda each: each.job.id) if seconds else ():
            due = max(intervals.created, due)
            if (
                intervals.leases
                and not _was_moved(intervals)
                and _taken(intervals) < due - _ROUNDING
            ):
                early = (due - _taken(intervals)) / _MICROS
                text = f"ran {early:g} s before the window of {key} had ended"
                yield Violation("N4", intervals.job.id, text)
            due += round(seconds * _MICROS)


def _by_key(history: IndexedHistory) -> dict[str, list[JobIntervals]]:
    found: dict[str, list[JobIntervals]] = {}
    for intervals in history.jobs.values():
        for tag in intervals.job.tags:
            if tag.startswith("key:"):
                found.setdefault(tag.removeprefix("key:"), []).append(intervals)
    return found


def _taken(intervals: JobIntervals) -> int:
    """When a worker took the job, or it ended before."""
    ended = live_spans(intervals)[0][1]
    return min(intervals.leases[0].start, ended) if intervals.leases else ended


def _was_moved(intervals: JobIntervals) -> bool:
    """Paused, parked or retried: its time was not moved, or is another one."""
    first = intervals.leases[0].start
    return any(event.token is None and micros_of(event.at) <= first for event in intervals.events)


def _calls_of_jobs(
    history: IndexedHistory,
) -> dict[int, list[tuple[Invocation, str, dict[str, Any]]]]:
    """The calls that made a job, or found it by its key. A call without a response may have changed
    any job of its key."""
    found: dict[int, list[tuple[Invocation, str, dict[str, Any]]]] = {}
    by_key = _by_key(history)
    for invocation in history.invocations:
        if invocation.request.info.get("verb") != "enqueue":
            continue
        response = invocation.response
        results = response.info.get("results", ()) if response else ()
        for index, asked in enumerate(invocation.request.info["jobs"]):
            if "waiting" not in asked:
                continue
            ids = (
                [results[index][0]]
                if results
                else [each.job.id for each in by_key.get(asked["waiting"], ())]
            )
            name = f"{invocation.request.call}.{index}"
            for job_id in ids:
                if job_id in history.jobs:
                    found.setdefault(job_id, []).append((invocation, name, asked))
    return found
