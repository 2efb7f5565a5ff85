"""Jobs by the ids that a caller gives."""

from __future__ import annotations

from collections.abc import Sequence

from freehold.errors import BadInput
from freehold.model.job import Job
from freehold.operations.input_checks import LARGEST_ID
from freehold.store.statements import Verb
from freehold.store.verbs import operator as operator_verbs
from freehold.store.verbs import queries


def existing(job_id: int) -> Verb[Job]:
    jobs = yield from queries.read_jobs(checked_ids([job_id]))
    if job_id not in jobs:
        raise operator_verbs.not_found(job_id)
    return jobs[job_id]


def checked_ids(ids: Sequence[int]) -> Sequence[int]:
    """No job has an id outside the column's range: such a number never reaches the store."""
    for job_id in ids:
        if type(job_id) is not int:  # not every caller uses a type checker
            raise BadInput(f"{job_id!r} is not a job id: give a whole number")
        if not 0 < job_id <= LARGEST_ID:
            raise operator_verbs.not_found(job_id)
    return ids
