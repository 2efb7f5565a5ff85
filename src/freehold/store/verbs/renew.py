"""Renewing: a leased job starts to run, its lease is extended, stop requests reach its owner."""

from __future__ import annotations

from collections.abc import Container, Sequence

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
    return _missing(leases, {job_id for (job_id,) in rows})


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
    held = {job_id: StopRequest(request) if request else None for job_id, request in rows}
    return Renewed(held, _missing(leases, held))


def stop_requests(owner: str) -> Verb[dict[LeaseKey, StopRequest]]:
    """The stop requests for this owner's jobs. Reads only."""
    rows = yield from read("stop_requests", owner=owner)
    return {LeaseKey(job_id, token): StopRequest(request) for job_id, token, request in rows}


def _keys(leases: Sequence[LeaseKey]) -> list[dict[str, int]]:
    return [{"id": lease.job_id, "token": lease.token} for lease in leases]


def _missing(leases: Sequence[LeaseKey], hit: Container[int]) -> tuple[int, ...]:
    return tuple(lease.job_id for lease in leases if lease.job_id not in hit)
