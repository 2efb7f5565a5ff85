"""Ghosts: stale writes in the name of a killed worker, after its leases have expired.

A network may still deliver writes that a process sent before it was killed. So its last attempts
are read from its records; once their leases have expired by the store's clock, they are finished,
failed, renewed, started and logged in its name. The store must accept none of these writes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from freehold.lab.checker.record import Record, read_logs
from freehold.model.job import Attempt, Job
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.store import AsyncStore
from freehold.store.types import AttemptEnd, LeaseKey, LogChunk

_MAX_ATTEMPTS = 10
_STALE_OUTCOMES = (
    Outcome(kind=OutcomeKind.SUCCESS, result=b'{"token":-1}'),
    Outcome(kind=OutcomeKind.ERROR, reason="a ghost"),
    Outcome(kind=OutcomeKind.GIVE_BACK, reason="a ghost"),
)


class Ghosts:
    """Counts the rejected and lists the accepted writes."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self.rejected: Counter[str] = Counter()
        self.accepted: list[str] = []

    async def send_stale_writes(self, owner: str, log: Path, lease_seconds: float) -> None:
        attempts = unfinished(log)[-_MAX_ATTEMPTS:]
        now = await self._store.now()
        jobs = await self._store.read([attempt.job_id for attempt in attempts])
        stale = []
        for attempt in attempts:
            lease = _lease(jobs.get(attempt.job_id))
            if lease is None or lease[0] != attempt.token or lease[1] <= now.timestamp():
                stale.append(attempt)
        if stale:
            await self._write_all(owner, stale, lease_seconds)

    async def _write_all(self, owner: str, stale: list[Attempt], lease_seconds: float) -> None:
        keys = [LeaseKey(attempt.job_id, attempt.token) for attempt in stale]
        for outcome in _STALE_OUTCOMES:
            finished = await self._store.finish(
                owner, [AttemptEnd(each, outcome) for each in stale]
            )
            self._count(f"finish ({outcome.kind})", keys, finished.lost)
        renewed = await self._store.renew(owner, keys, lease_seconds, None, 1.0)
        self._count("renew", keys, renewed.lost)
        self._count("mark_running", keys, await self._store.mark_running(owner, keys))
        chunks = [LogChunk(key, None, ()) for key in keys]
        self._count("append_log", keys, await self._store.append_log(owner, chunks))

    def _count(self, verb: str, keys: list[LeaseKey], lost: tuple[int, ...]) -> None:
        for key in keys:
            if key.job_id in lost:
                self.rejected[verb] += 1
            else:
                self.accepted.append(f"{verb} of job {key.job_id}, token {key.token}")


def _lease(job: Job | None) -> tuple[int, float] | None:
    if job is None or job.lease is None:
        return None
    return job.lease.token, job.lease.expires_at.timestamp()


def unfinished(log: Path) -> list[Attempt]:
    """The attempts that a worker has started and not ended, or had when it was killed."""
    started: dict[tuple[int, int], Record] = {}
    for record in read_logs([log] if log.exists() else []):
        if record.kind == "started":
            started[record.job, record.token] = record
        elif record.kind == "ended":
            started.pop((record.job, record.token), None)
    return [
        Attempt(
            record.job,
            record.info["owner"],
            record.token,
            "plain",
            record.info["queue"],
            "{}",
            record.attempt,
            3,
            0,
            0,
            record.info["target"],
            None,
            None,
        )
        for record in started.values()
    ]
