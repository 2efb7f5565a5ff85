"""Showing the private data of a job, which the audit records."""

from __future__ import annotations

from freehold.model.audit import PYTHON, AuditKind
from freehold.operations.input_checks import author_of, checked_ids
from freehold.store.statements import Verb, method
from freehold.store.verbs import audit, queries
from freehold.store.verbs.operator import not_found

SHOW_PRIVATE = "show_private"


def record_private_look(
    job_id: int, by: str, reason: str | None = None, via: str = PYTHON
) -> Verb[None]:
    """Record that the arguments, the result and the traceback of a job are shown to a person."""
    author = author_of(by, via, reason)
    if job_id not in (yield from queries.read_jobs(checked_ids([job_id]))):
        raise not_found(job_id)
    yield from audit.record(author, SHOW_PRIVATE, AuditKind.JOB, str(job_id))


class PrivateDataActions:
    record_private_look = method(record_private_look)
