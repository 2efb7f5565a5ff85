"""Simulated kinds: the same input, the same behaviour."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from freehold.model.job import Job, NewJob
from freehold.model.state import FINAL, State
from tests.worker.fleet import Fleet, eventually

_CONFIGURATION = """
[kinds.quick]
duration_ms = [1, 20]
[kinds.steady]
duration_ms = [200, 800]
[kinds.flaky]
duration_ms = [20, 200]
fail_attempts = 1
[kinds.broken]
duration_ms = 50
outcome = "fail"
retryable = false
[kinds.refusing]
duration_ms = 20
outcome = "cancel"
"""
_MIX = {"quick": 700, "steady": 100, "flaky": 120, "broken": 40, "refusing": 40}
_EXPECTED = {
    "quick": (State.SUCCEEDED, 1),
    "steady": (State.SUCCEEDED, 1),
    "flaky": (State.SUCCEEDED, 2),
    "broken": (State.FAILED, 1),
    "refusing": (State.CANCELED, 1),
}


@pytest.mark.requirement("S2.8", "S2.5", "S2.6")
@pytest.mark.either_store
def test_a_thousand_jobs_of_mixed_kinds_end_the_same_both_times(fleet: Fleet) -> None:
    """Twice the same input, run by two workers at once: nothing else may matter."""
    runs = [_enqueue(fleet), _enqueue(fleet)]
    (fleet.folder / "freehold.toml").write_text(_CONFIGURATION)
    for _ in range(2):
        fleet.start("--concurrency", "150", lease=10.0, folder=fleet.folder)
    every = runs[0] + runs[1]
    eventually(lambda: _all_final(fleet, every))
    first, second = ([_outcome(job) for job in _read(fleet, ids)] for ids in runs)
    assert first == second
    for job in _read(fleet, every):
        assert (job.state, job.attempt) == _EXPECTED[job.task.removeprefix("sim.")]
    assert Counter(outcome[0] for outcome in first) == _named()


def _named() -> dict[str, int]:
    return {f"sim.{kind}": count for kind, count in _MIX.items()}


def _enqueue(fleet: Fleet) -> list[int]:
    jobs = [
        NewJob(task=task, args=f'{{"input": {number}}}'.encode())
        for task, count in _named().items()
        for number in range(count)
    ]
    return [handle.id for handle in fleet.app.enqueue_many(jobs)]


def _read(fleet: Fleet, ids: list[int]) -> list[Job]:
    found = fleet.app._client.store.read(ids)
    return [found[job_id] for job_id in ids]


def _all_final(fleet: Fleet, ids: list[int]) -> bool:
    return all(job.state in FINAL for job in _read(fleet, ids))


def _outcome(job: Job) -> tuple[Any, ...]:
    assert job.report is not None
    error = None if job.report.error is None else (job.report.error.type, job.report.error.message)
    return job.task, job.args, job.state, job.attempt, job.report.result, error, job.reason
