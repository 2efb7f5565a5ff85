"""What an operator's verbs check of their input: ids, filters, authors, and the interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from freehold.errors import BadInput
from freehold.model.audit import Author
from freehold.model.job import Job
from freehold.model.meta import encode_meta
from freehold.model.names import check_key, check_name, check_reason
from freehold.model.timestamps import check_timestamp
from freehold.store.statements import Verb
from freehold.store.types import JobFilter
from freehold.store.verbs import operator as operator_verbs
from freehold.store.verbs import queries

P = ParamSpec("P")
T = TypeVar("T")

LARGEST_ID = 2**63 - 1


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


def check_filter(filter: JobFilter) -> None:
    for what in ("queue", "task", "tag"):
        if getattr(filter, what) is not None:
            check_name(what, getattr(filter, what))
    for what in ("target", "error", "worker"):
        if getattr(filter, what) is not None:
            check_key(what, getattr(filter, what))
    encode_meta(filter.meta)
    _check_range("created", filter.created_since, filter.created_until)
    _check_range("finished", filter.finished_since, filter.finished_until)
    if filter.before is not None and not 0 < filter.before <= LARGEST_ID:
        raise BadInput(f"before={filter.before}: give the `next` of the page before")


def _check_range(what: str, since: datetime | None, until: datetime | None) -> None:
    for name, at in ((f"{what}_since", since), (f"{what}_until", until)):
        if at is not None:
            check_timestamp(name, at)
    if since is not None and until is not None and since >= until:
        raise BadInput(
            f"{what}_since={since.isoformat()} is not before {what}_until={until.isoformat()}: "
            "no job can match"
        )


def author_of(by: str, via: str, reason: str | None = None) -> Author:
    return Author(check_key("by", by), via, check_reason(reason))


def bound(verb: Callable[P, Verb[T]], **given: Any) -> Callable[P, Verb[T]]:
    """A verb with those of these parameters that it has: one that changes something has the
    interface, ``via``, as its parameter."""
    names = signature(verb).parameters
    own = {name: value for name, value in given.items() if name in names}
    return partial(verb, **own) if own else verb
