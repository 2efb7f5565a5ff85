"""Recovering: jobs whose lease has expired go through the same policy as failures."""

from __future__ import annotations

from freehold.model.job import StopRequest
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.statements import Verb, read, write
from freehold.store.types import AttemptEnd, Recovered
from freehold.store.verbs.claim import attempts_of
from freehold.store.verbs.finish import end_attempts


def recover(limit: int, chance: float) -> Verb[list[Recovered]]:
    """Recover jobs whose lease has expired, through the same policy as failures. Read expired
    leases without locks, decide, and write where they are still expired."""
    rows = yield from read("expired", limit=limit)
    if not rows:
        return []
    outcome = Outcome(kind=OutcomeKind.LOST_LEASE)
    ended = [
        AttemptEnd(
            attempt, outcome, StopRequest(request) if request else None, _spread(chance, index)
        )
        for index, (*columns, owner, request) in enumerate(rows)
        for attempt in attempts_of([tuple(columns)], owner)
    ]
    decisions = yield from end_attempts(None, ended, expired=True)
    return [
        Recovered(end.attempt, decisions[end.attempt.job_id])
        for end in ended
        if end.attempt.job_id in decisions
    ]


def expire_leases(owner: str) -> Verb[int]:
    """End all leases of an owner whose process is known to be dead, or of the workers of a host
    (``owner.1``, ``owner.2``). Returns how many. Its jobs can be recovered at once; a write that it
    sent before is refused, as after any expiry."""
    rows = yield from write("expire_leases", owner=owner)
    return len(rows)


def restart_leases(limit: int) -> Verb[int]:
    """After the clock was set back: leases that began in what is now the future last for their
    length from now, not for the whole step. No lease ends before its owner expects it. Returns how
    many were restarted."""
    rows = yield from write("restart_leases", limit=limit)
    return len(rows)


def _spread(chance: float, index: int) -> float:
    """One random draw, spread by the golden ratio: jobs lost together are retried apart."""
    return (chance + index * 0.618033988749895) % 1.0
