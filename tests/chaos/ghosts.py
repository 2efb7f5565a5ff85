"""Ghosts: whatever a dead worker could still say is said, after its lease has run out.

A killed process says nothing any more, but a network may still deliver what it had said. So its
last attempts are read from its own book; and once the store's clock says that their leases are
over, they are finished, failed, renewed, shown and noted in its name. Nothing of it may be taken.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from freehold.lab.checker.record import Record, read_logs
from freehold.model.job import Attempt, Job
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.store import AsyncStore
from freehold.store.types import AttemptEnd, LeaseKey, LogChunk

_MOST = 10
_LIES = (
    Outcome(kind=OutcomeKind.SUCCESS, result=b'{"token":-1}'),
    Outcome(kind=OutcomeKind.ERROR, reason="a ghost"),
    Outcome(kind=OutcomeKind.GIVE_BACK, reason="a ghost"),
)


class Ghosts:
    """Counts what was refused, and what was not."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self.rejected: Counter[str] = Counter()
        self.accepted: list[str] = []

    async def haunt(self, owner: str, book: Path, lease_seconds: float) -> None:
        attempts = unended(book)[-_MOST:]
        now = await self._store.now()
        jobs = await self._store.read([attempt.job_id for attempt in attempts])
        stale = []
        for attempt in attempts:
            lease = _lease(jobs.get(attempt.job_id))
            if lease is None or lease[0] != attempt.token or lease[1] <= now.timestamp():
                stale.append(attempt)
        if stale:
            await self._say(owner, stale, lease_seconds)

    async def _say(self, owner: str, stale: list[Attempt], lease_seconds: float) -> None:
        keys = [LeaseKey(attempt.job_id, attempt.token) for attempt in stale]
        for lie in _LIES:
            finished = await self._store.finish(owner, [AttemptEnd(each, lie) for each in stale])
            self._count(f"finish ({lie.kind})", keys, finished.lost)
        renewed = await self._store.renew(owner, keys, lease_seconds, None, 1.0)
        self._count("renew", keys, renewed.lost)
        self._count("start", keys, await self._store.start(owner, keys))
        noted = [LogChunk(key, None, ()) for key in keys]
        self._count("note", keys, await self._store.note(owner, noted))

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


def unended(book: Path) -> list[Attempt]:
    """What a worker has begun and not ended, or had when it was killed."""
    begun: dict[tuple[int, int], Record] = {}
    for record in read_logs([book] if book.exists() else []):
        if record.what == "started":
            begun[record.job, record.token] = record
        elif record.what == "ended":
            begun.pop((record.job, record.token), None)
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
        for record in begun.values()
    ]
