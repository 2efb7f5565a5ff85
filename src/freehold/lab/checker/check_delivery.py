"""I1, I6, I10: nothing that was acknowledged is lost, keys hold, and answers are honest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from freehold.lab.checker.indexed_history import IndexedHistory, Question
from freehold.lab.checker.job_intervals import live_spans
from freehold.lab.checker.violation import Violation

_KEY_WAIT_MICROS = 250_000


def no_loss(case: IndexedHistory) -> Iterator[Violation]:
    """Whoever was told an id finds the job."""
    for question in _enqueues(case):
        for job_id, _created in _answers(question):
            if job_id not in case.lives:
                yield Violation("I1", job_id, f"{question.asked.call} was told of it; it is gone")


def honest_enqueues(case: IndexedHistory) -> Iterator[Violation]:
    """What a client was told is what is stored."""
    made = case.made
    for question in _enqueues(case):
        asked = question.asked
        for place, (job_id, created) in enumerate(_answers(question)):
            life = case.lives.get(job_id)
            name = f"{asked.call}.{place}"
            if life is None:
                continue
            if created and job_id not in made.get(name, ()):
                yield Violation("I10", job_id, f"{name} was told that it made it, but did not")
            if not created and not _is_holder(case, job_id, asked.info["jobs"][place], name):
                yield Violation("I6", job_id, f"{name} was told that it holds the key: it does not")


def nothing_twice(case: IndexedHistory) -> Iterator[Violation]:
    """One call makes one job, however often it is repeated; one that failed makes none."""
    made = case.made
    told: dict[str, list[Question]] = {}
    for question in _enqueues(case):
        told.setdefault(question.asked.call, []).append(question)
    for call, questions in told.items():
        for place in range(len(questions[0].asked.info["jobs"])):
            jobs = made.get(f"{call}.{place}", [])
            if len(jobs) > 1:
                yield Violation("I10", jobs[1], f"{call}.{place} made jobs {jobs}")
            if jobs and all(_is_surely_nothing(question) for question in questions):
                yield Violation("I10", jobs[0], f"{call}.{place} was told that nothing was written")


def unique_keys(case: IndexedHistory) -> Iterator[Violation]:
    """At most one live job per unique key. A row is made, and then waits for the end of the one
    before to be committed, where transactions run beside each other."""
    lag = min(case.evidence.commit_lag_micros, _KEY_WAIT_MICROS)
    held: dict[str, list[tuple[int, int, int]]] = {}
    for life in case.lives.values():
        if life.job.unique_key is not None:
            held.setdefault(life.job.unique_key, []).extend(
                (start, end, life.job.id) for start, end in live_spans(life)
            )
    for key, spans in held.items():
        spans.sort()
        for (_, end, first), (start, _, second) in pairwise(spans):
            if start + lag < end and first != second:
                yield Violation("I6", second, f"was live with job {first}: both have {key}")


def _enqueues(case: IndexedHistory) -> Iterator[Question]:
    return (each for each in case.questions if each.asked.info.get("verb") == "enqueue")


def _answers(question: Question) -> list[tuple[int, bool]]:
    if question.told is None:
        return []
    return [(job_id, created) for job_id, created in question.told.info.get("answers", ())]


def _is_surely_nothing(question: Question) -> bool:
    return question.told is not None and question.told.info.get("error") == "StoreUnavailable"


def _is_holder(case: IndexedHistory, job_id: int, asked: dict[str, Any], name: str) -> bool:
    """The job has the unique key, or came of the same idempotency key (which has one place)."""
    if asked.get("key") is not None and job_id in case.made.get(name, ()):
        return True
    return asked.get("unique") is not None and (
        case.lives[job_id].job.unique_key == asked["unique"]
    )
