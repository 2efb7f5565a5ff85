"""2b. What a handler says under its lease: kept with its job, refused from a stale owner."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from leasehold.model.note import Note
from leasehold.store.contract import Noted
from leasehold.store.rows import json_text, note_of
from leasehold.store.steps import Steps, read, write


def note(owner: str, noted: Sequence[Noted]) -> Steps[tuple[int, ...]]:
    """Repeating a write is safe: lines are known by their numbers."""
    if not noted:
        return ()
    rows = [
        {
            "id": each.lease.job_id,
            "token": each.lease.token,
            "progress": json_text(each.progress),
            "lines": msgspec.to_builtins(each.lines),
        }
        for each in noted
    ]
    held = {row[0] for row in (yield from write("note", rows, owner=owner))}
    return tuple(each.lease.job_id for each in noted if each.lease.job_id not in held)


def notes(job_id: int) -> Steps[list[Note]]:
    rows = yield from read("read_notes", id=job_id)
    return [note_of(row) for row in rows]
