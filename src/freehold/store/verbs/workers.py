"""The list of workers: each writes its own row, which is valid until it expires.

These rows are for people and decide nothing: only a lease makes a worker the owner of a job.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from freehold.model.audit import MANAGER, AuditKind, Author
from freehold.model.timestamps import time_of
from freehold.model.worker_info import Heartbeat, LiveWorker, WorkerState
from freehold.store.rows import json_text, names_of
from freehold.store.statements import Statement, Verb, read, together, write
from freehold.store.verbs import audit


def heartbeat(heartbeat: Heartbeat, heartbeat_seconds: float) -> Verb[None]:
    """Record that a worker is alive, for this long. It decides nothing."""
    statement = heartbeat_statement(heartbeat, heartbeat_seconds)
    yield from write(statement.name, **statement.params)


def heartbeat_statement(heartbeat: Heartbeat, heartbeat_seconds: float) -> Statement:
    """The statement alone, for callers that send it together with others."""
    return Statement(
        "heartbeat",
        {
            "owner": heartbeat.owner,
            "manager": heartbeat.manager,
            "host": heartbeat.host,
            "pid": heartbeat.pid,
            "heartbeat_seconds": heartbeat_seconds,
            "concurrency": heartbeat.concurrency,
            "running": heartbeat.running,
            "waiting": heartbeat.waiting,
            "finished": heartbeat.finished,
            "state": heartbeat.state.value,
            "version": heartbeat.version,
            "queues": json_text(heartbeat.queues),
            "tasks": json_text(heartbeat.tasks),
        },
    )


def remove_worker(owner: str) -> Verb[None]:
    """Remove a worker that has ended from the list."""
    yield from write("remove_worker", owner=owner)


def record_scaling(manager: str, before: int, after: int, reason: str) -> Verb[None]:
    """Record in the audit that a manager changes the number of its workers, and why."""
    author, values = Author(manager, MANAGER, reason), {"from": before, "to": after}
    yield from together(*audit.of_setting(author, "scale", AuditKind.FLEET, manager, values))


def workers() -> Verb[list[LiveWorker]]:
    """Workers with a recent heartbeat, in the order in which they started."""
    rows = yield from read("workers")
    return [_worker_of(WorkerRow._make(row)) for row in rows]


def remove_silent_workers(silent_seconds: float) -> Verb[int]:
    """Remove workers whose heartbeat expired this long ago. Returns how many."""
    rows = yield from write("remove_silent_workers", silent_seconds=silent_seconds)
    return len(rows)


class WorkerRow(NamedTuple):
    """The columns of `workers`."""

    owner: str
    manager: str | None
    host: str
    pid: int
    started_at: datetime | int
    seen_at: datetime | int
    expires_at: datetime | int
    concurrency: int
    running: int
    waiting: int
    finished: int
    state: str
    version: str
    queues: str | None
    tasks: str | None


def _worker_of(row: WorkerRow) -> LiveWorker:
    return LiveWorker(
        owner=row.owner,
        manager=row.manager,
        host=row.host,
        pid=row.pid,
        started_at=time_of(row.started_at),
        seen_at=time_of(row.seen_at),
        expires_at=time_of(row.expires_at),
        concurrency=row.concurrency,
        running=row.running,
        waiting=row.waiting,
        finished=row.finished,
        state=WorkerState(row.state),
        version=row.version,
        queues=names_of(row.queues),
        tasks=names_of(row.tasks),
    )
