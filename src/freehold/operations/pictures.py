"""What pictures show: the attempts of each worker, and the jobs around one in its lane."""

from __future__ import annotations

from datetime import datetime

from freehold.errors import BadInput
from freehold.model.attempt_span import AttemptSpans
from freehold.model.job import Job
from freehold.model.names import check_key
from freehold.model.timestamps import check_timestamp
from freehold.operations.input_checks import LARGEST_ID
from freehold.store.statements import Verb, method
from freehold.store.verbs import queries

#: The most attempts of one picture.
SPANS_LIMIT = 2_000
_AROUND_LIMIT = 100


def attempts(
    since: datetime, until: datetime | None = None, limit: int = SPANS_LIMIT
) -> Verb[AttemptSpans]:
    """The attempts that ran in this time, the newest first: those of leased jobs, and those that
    ended, among the newest finished jobs and events."""
    check_timestamp("since", since)
    now = yield from queries.now()
    end = now if until is None else check_timestamp("until", until)
    if since >= end:
        raise BadInput(f"since={since.isoformat()}: give a time before {end.isoformat()}")
    if not 1 <= limit <= SPANS_LIMIT:
        raise BadInput(f"limit={limit}: give 1 to {SPANS_LIMIT} attempts")
    return (yield from queries.attempts(since, end, limit))


def lane_jobs(target: str, around: int | None = None, limit: int = 10) -> Verb[list[Job]]:
    """The holder of a lane, then up to so many jobs before and after this id, in their order."""
    check_key("target", target)
    if not 1 <= limit <= _AROUND_LIMIT:
        raise BadInput(f"limit={limit}: give 1 to {_AROUND_LIMIT} jobs")
    if around is not None and not 0 < around <= LARGEST_ID:
        raise BadInput(f"around={around}: give the id of a job")
    return (yield from queries.lane_jobs(target, around or 1, limit))


class PictureActions:
    attempts = method(attempts)
    lane_jobs = method(lane_jobs)
