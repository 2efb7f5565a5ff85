"""The audit of operators' changes: statements that record them, and pages of it.

A change and its record are one transaction. The statement that records comes first: it locks the
rows, reads the values before the change, and has the guard of the statement that changes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from freehold.errors import BadInput
from freehold.model.audit import AuditEntry, AuditFilter, AuditKind, AuditPage, Author
from freehold.model.job import Job
from freehold.model.timestamps import time_of
from freehold.store.rows import json_text
from freehold.store.stage_sql import stage_byte
from freehold.store.statements import Row, Statement, Verb, read, together, write
from freehold.store.types import PAGE_LIMIT

#: Rows that one page reads at most.
WINDOW = 1000
_LAST_ID = 2**63 - 1


def of_setting(
    author: Author | None,
    verb: str,
    kind: AuditKind,
    subject: str,
    after: dict[str, Any] | None = None,
    *,
    only_if_paused: bool = False,
) -> list[Statement]:
    """Records a change of a queue, lane, limit or tenant; nothing without an author."""
    if author is None:
        return []
    params = {
        **_author_params(author, verb),
        "kind": kind.value,
        "subject": subject,
        "after": json_text(after),
        "only_if_paused": only_if_paused,
    }
    return [Statement("audit_setting", params)]


def record(author: Author, verb: str, kind: AuditKind, subject: str) -> Verb[None]:
    """Records what changes nothing, but must be known: that private data was shown."""
    yield from together(*of_setting(author, verb, kind, subject))


def of_jobs(
    author: Author | None, verb: str, changes: Sequence[tuple[Job, dict[str, Any]]]
) -> list[Statement]:
    """Records changes of jobs as they were read; each with what it changes."""
    if author is None or not changes:
        return []
    rows = [_job_row(job, after) for job, after in changes]
    return [Statement("audit_jobs", _author_params(author, verb), rows)]


def _job_row(job: Job, after: dict[str, Any]) -> dict[str, Any]:
    before = {name: getattr(job, name) for name in after if name in job.__struct_fields__}
    request = after.get("stop_request")
    return {
        "id": job.id,
        "seen_stage": None if job.stage is None else stage_byte(job.stage),
        "seen_state": job.state.value,
        "token": None if job.lease is None else job.lease.token,
        "stop_request": request,
        "before": json_text({"state": job.state} | before),
        "after": json_text(after),
    }


def _author_params(author: Author, verb: str) -> dict[str, Any]:
    return {"by": author.by, "via": author.via, "reason": author.reason, "verb": verb}


def audit(filter: AuditFilter) -> Verb[AuditPage]:
    """Changes, newest first."""
    if not 1 <= filter.limit <= PAGE_LIMIT:
        raise BadInput(f"limit={filter.limit}: a page has 1 to {PAGE_LIMIT} changes")
    rows = yield from read(
        "audit_page" if filter.subject is None else "audit_of_subject",
        by=filter.by,
        verb=filter.verb,
        kind=filter.kind,
        subject=filter.subject,
        before=_LAST_ID if filter.before is None else filter.before,
        limit=filter.limit + 1,  # one more shows whether there is a next page
        window=WINDOW,
    )
    entries = [_entry(row[3:]) for row in rows if row[3] is not None]
    if len(entries) > filter.limit:
        last = entries[filter.limit - 1]
        return AuditPage(tuple(entries[: filter.limit]), last.id, last.at)
    low, at, examined = rows[0][:3]
    end: tuple[int | None, datetime | None] = (None, None)
    if examined >= WINDOW:
        end = (low, time_of(at))
    return AuditPage(tuple(entries), *end)


def _entry(row: Row) -> AuditEntry:
    entry_id, at, by, via, verb, kind, subject, reason, before, after = row
    return AuditEntry(
        id=entry_id,
        at=time_of(at),
        by=by,
        via=via,
        verb=verb,
        kind=AuditKind(kind),
        subject=subject,
        reason=reason,
        before=None if before is None else msgspec.json.decode(before),
        after=None if after is None else msgspec.json.decode(after),
    )


def apply_audit_retention(audit_days: float, limit: int) -> Verb[int]:
    """Delete changes older than this, and bulk operations that ended before. Returns how many
    changes."""
    rows = yield from write("apply_audit_retention", audit_days=audit_days, limit=limit)
    yield from write("drop_old_bulk", audit_days=audit_days)
    return len(rows)
