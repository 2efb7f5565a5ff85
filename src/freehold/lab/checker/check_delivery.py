"""I1, I6, I10: no acknowledged job is lost, keys are unique, and responses are true."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from freehold.lab.checker.indexed_history import IndexedHistory, Invocation
from freehold.lab.checker.job_intervals import live_spans
from freehold.lab.checker.violation import Violation

_KEY_WAIT_MICROS = 250_000


def no_loss(history: IndexedHistory) -> Iterator[Violation]:
    """Every job with an acknowledged id is in the store."""
    for invocation in _enqueues(history):
        for job_id, _created in _results(invocation):
            if job_id not in history.jobs:
                yield Violation(
                    "I1",
                    job_id,
                    f"was acknowledged to {invocation.request.call}, but is not in the store",
                )


def enqueue_responses_are_true(history: IndexedHistory) -> Iterator[Violation]:
    """The response to an enqueue agrees with the store."""
    jobs_by_call = history.jobs_by_call
    for invocation in _enqueues(history):
        request = invocation.request
        for index, (job_id, created) in enumerate(_results(invocation)):
            intervals = history.jobs.get(job_id)
            name = f"{request.call}.{index}"
            if intervals is None:
                continue
            is_replaced = "waiting" in request.info["jobs"][index]
            if created and not is_replaced and job_id not in jobs_by_call.get(name, ()):
                yield Violation(
                    "I10", job_id, f"{name} got the response that it created this job, but did not"
                )
            if not created and not _is_holder(history, job_id, request.info["jobs"][index], name):
                yield Violation(
                    "I6", job_id, f"{name} got it as the holder of its key, but it is not"
                )


def no_duplicates(history: IndexedHistory) -> Iterator[Violation]:
    """A call creates one job however often it is repeated, and none if it failed."""
    jobs_by_call = history.jobs_by_call
    by_call: dict[str, list[Invocation]] = {}
    for invocation in _enqueues(history):
        by_call.setdefault(invocation.request.call, []).append(invocation)
    for call, invocations in by_call.items():
        for index in range(len(invocations[0].request.info["jobs"])):
            jobs = jobs_by_call.get(f"{call}.{index}", [])
            if len(jobs) > 1:
                yield Violation("I10", jobs[1], f"{call}.{index} created jobs {jobs}")
            if jobs and all(_is_surely_nothing(invocation) for invocation in invocations):
                yield Violation(
                    "I10", jobs[0], f"{call}.{index} got the response that nothing was written"
                )


def unique_keys(history: IndexedHistory) -> Iterator[Violation]:
    """At most one live job per unique key. With concurrent transactions, a new row may be created
    while the end of the job before is not yet committed."""
    commit_lag = min(history.evidence.commit_lag_micros, _KEY_WAIT_MICROS)
    held: dict[str, list[tuple[int, int, int]]] = {}
    for intervals in history.jobs.values():
        if intervals.job.unique_key is not None:
            held.setdefault(intervals.job.unique_key, []).extend(
                (start, end, intervals.job.id) for start, end in live_spans(intervals)
            )
    for key, spans in held.items():
        spans.sort()
        for (_, end, first), (start, _, second) in pairwise(spans):
            if start + commit_lag < end and first != second:
                text = f"was live at the same time as job {first}; both have unique key {key}"
                yield Violation("I6", second, text)


def _enqueues(history: IndexedHistory) -> Iterator[Invocation]:
    return (each for each in history.invocations if each.request.info.get("verb") == "enqueue")


def _results(invocation: Invocation) -> list[tuple[int, bool]]:
    if invocation.response is None:
        return []
    return [(job_id, created) for job_id, created in invocation.response.info.get("results", ())]


def _is_surely_nothing(invocation: Invocation) -> bool:
    return (
        invocation.response is not None
        and invocation.response.info.get("error") == "StoreUnavailable"
    )


def _is_holder(history: IndexedHistory, job_id: int, request: dict[str, Any], name: str) -> bool:
    """The job has the unique key, or was created by a call with the same idempotency key."""
    if request.get("key") is not None and job_id in history.jobs_by_call.get(name, ()):
        return True
    if "waiting" in request:
        return f"key:{request['waiting']}" in history.jobs[job_id].job.tags
    return request.get("unique") is not None and (
        history.jobs[job_id].job.unique_key == request["unique"]
    )
