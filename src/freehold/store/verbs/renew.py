"""Renewing: a leased job starts to run, its lease is extended, stop requests reach its owner."""

from __future__ import annotations

from collections.abc import Sequence

from freehold.model.job import StopRequest
from freehold.model.worker_info import Heartbeat
from freehold.store.statements import Statement, Verb, read, together, write
from freehold.store.types import LeaseKey, Renewed
from freehold.store.verbs.workers import heartbeat_statement


def mark_running(
    owner: str, leases: Sequence[LeaseKey], ran_seconds: Sequence[float] | None = None
) -> Verb[tuple[int, ...]]:
    """Show leased jobs as running, for as long as each has run by now. Returns the jobs whose lease
    was lost."""
    if not leases:
        return ()
    ran = ran_seconds or [0.0] * len(leases)
    started = [
        {**key, "ran_seconds": seconds} for key, seconds in zip(_keys(leases), ran, strict=True)
    ]
    rows = yield from write("mark_running", started, owner=owner)
    return _missing(leases, {row[0] for row in rows})


def renew(
    owner: str,
    leases: Sequence[LeaseKey],
    lease_seconds: float,
    heartbeat: Heartbeat | None = None,
    heartbeat_seconds: float = 0.0,
) -> Verb[Renewed]:
    """Extend leases that still hold. An expired lease is no lease, even if its job was not
    recovered yet. A heartbeat that is due as well shares the round trip."""
    if not leases:
        return Renewed({}, ())
    renewal = Statement("renew", {"owner": owner, "lease_seconds": lease_seconds}, _keys(leases))
    also = () if heartbeat is None else (heartbeat_statement(heartbeat, heartbeat_seconds),)
    rows = (yield from together(renewal, *also))[0]
    held = {row[0]: StopRequest(row[1]) if row[1] else None for row in rows}
    return Renewed(held, _missing(leases, held.keys()))


def stop_requests(owner: str) -> Verb[dict[LeaseKey, StopRequest]]:
    """The stop requests for this owner's jobs. Reads only."""
    rows = yield from read("stop_requests", owner=owner)
    return {LeaseKey(row[0], row[1]): StopRequest(row[2]) for row in rows}


def _keys(leases: Sequence[LeaseKey]) -> list[dict[str, int]]:
    return [{"id": lease.job_id, "token": lease.token} for lease in leases]


def _missing(leases: Sequence[LeaseKey], hit: set[int] | object) -> tuple[int, ...]:
    return tuple(lease.job_id for lease in leases if lease.job_id not in hit)  # type: ignore[operator]
