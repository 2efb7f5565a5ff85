"""The list of workers: each writes its own row, which is valid until it expires.

These rows are for people and decide nothing: only leases say which worker owns a job.
"""

from __future__ import annotations

from freehold.model.worker_info import Heartbeat, LiveWorker, WorkerState
from freehold.store.rows import json_text, names_of, time_of
from freehold.store.statements import Row, Statement, Verb, read, write


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


def workers() -> Verb[list[LiveWorker]]:
    """Workers with a recent heartbeat, in the order in which they started."""
    rows = yield from read("workers")
    return [_worker_of(row) for row in rows]


def remove_silent_workers(silent_seconds: float) -> Verb[int]:
    """Remove workers whose heartbeat expired this long ago. Returns how many."""
    rows = yield from write("remove_silent_workers", silent_seconds=silent_seconds)
    return len(rows)


def _worker_of(row: Row) -> LiveWorker:
    """Columns as in `workers.sql`."""
    return LiveWorker(
        owner=row[0],
        manager=row[1],
        host=row[2],
        pid=row[3],
        started_at=time_of(row[4]),
        seen_at=time_of(row[5]),
        expires_at=time_of(row[6]),
        concurrency=row[7],
        running=row[8],
        waiting=row[9],
        finished=row[10],
        state=WorkerState(row[11]),
        version=row[12],
        queues=names_of(row[13]),
        tasks=names_of(row[14]),
    )
