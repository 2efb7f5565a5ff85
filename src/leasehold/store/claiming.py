"""2. A ready job becomes an attempt under a lease; the lease goes on while it is renewed."""

from __future__ import annotations

from collections.abc import Sequence

from leasehold.errors import StoreError
from leasehold.model.job import Attempt, Request
from leasehold.store.contract import ClaimAsk, LeaseKey, Renewed
from leasehold.store.rows import attempt_of
from leasehold.store.steps import Conflict, Rows, Steps, read, write

#: Rounds of one claim: each demotes lane jobs that met a held lane, or meets another claimer.
_ROUNDS = 50
#: Rounds in a row that moved nothing: the rest is in other claimers' hands just now.
_IDLE_ROUNDS = 2
_STRIDE = 10
_STRIDE_LIMIT = 1000


def claim(ask: ClaimAsk) -> Steps[list[Attempt]]:
    attempts: list[Attempt] = []
    for want in ask.wants:
        attempts += yield from _claim_queue(ask, want.queue, want.count)
    return attempts


def _claim_queue(ask: ClaimAsk, queue: str, count: int) -> Steps[list[Attempt]]:
    """Claim until enough, or until nothing is left that this claimer could move.

    Candidates that lost their lane to a holder are demoted and make room for the next ones.
    Those whose lane is just changing hands stay ready; the next round looks past them.
    """
    attempts: list[Attempt] = []
    past = idle = 0
    for _ in range(_ROUNDS):
        wanted = count - len(attempts)
        if wanted <= 0 or idle >= _IDLE_ROUNDS:
            break
        try:
            rows = yield from _claim_once(ask, queue, wanted, wanted + past)
        except Conflict:
            continue  # another claimer won the same lane: now its holder can be seen
        except StoreError:
            if attempts:  # what was won in the rounds before is ours
                break
            raise
        won = [attempt_of(row, ask.owner) for row in rows if row[0] is not None]
        attempts += won
        more, unsettled = rows[-1][12], rows[-1][13]
        if not more and not unsettled:
            break
        idle = 0 if won or unsettled < wanted + past else idle + 1
        # Where followers stand in the way, look further each time: they are demoted once.
        past = unsettled if won else unsettled + min(2 * past + _STRIDE, _STRIDE_LIMIT)
    attempts.sort(key=lambda attempt: (-attempt.priority, attempt.job_id))
    return attempts


def _claim_once(ask: ClaimAsk, queue: str, wanted: int, looked_at: int) -> Steps[Rows]:
    rows = yield from write(
        "claim",
        queue=queue,
        wanted=wanted,
        looked_at=looked_at,
        owner=ask.owner,
        lease_seconds=ask.lease_seconds,
        tasks=None if ask.tasks is None else sorted(ask.tasks),
    )
    return rows


def start(owner: str, leases: Sequence[LeaseKey]) -> Steps[tuple[int, ...]]:
    if not leases:
        return ()
    rows = yield from write("start", _keys(leases), owner=owner)
    return _missing(leases, {row[0] for row in rows})


def renew(owner: str, leases: Sequence[LeaseKey], lease_seconds: float) -> Steps[Renewed]:
    if not leases:
        return Renewed({}, ())
    rows = yield from write("renew", _keys(leases), owner=owner, lease_seconds=lease_seconds)
    held = {row[0]: Request(row[1]) if row[1] else None for row in rows}
    return Renewed(held, _missing(leases, held.keys()))


def requests(owner: str) -> Steps[dict[LeaseKey, Request]]:
    rows = yield from read("requests", owner=owner)
    return {LeaseKey(row[0], row[1]): Request(row[2]) for row in rows}


def _keys(leases: Sequence[LeaseKey]) -> list[dict[str, int]]:
    return [{"id": lease.job_id, "token": lease.token} for lease in leases]


def _missing(leases: Sequence[LeaseKey], hit: set[int] | object) -> tuple[int, ...]:
    return tuple(lease.job_id for lease in leases if lease.job_id not in hit)  # type: ignore[operator]
