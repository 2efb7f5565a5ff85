"""2. A ready job becomes an attempt under a lease; the lease goes on while it is renewed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from leasehold.errors import StoreError
from leasehold.model.job import Attempt, Request
from leasehold.model.limit import ALL_QUEUES
from leasehold.model.registry import Beat
from leasehold.store.contract import ClaimAsk, LeaseKey, Renewed, Want
from leasehold.store.place import Place, no_memory
from leasehold.store.registering import beat_statement
from leasehold.store.rows import attempt_of
from leasehold.store.steps import Conflict, Statement, Steps, read, together, write

#: Rounds of one claim: each demotes lane jobs that met a held lane, or meets another claimer.
_ROUNDS = 50
#: Rounds in a row that moved nothing: the rest is in other claimers' hands just now.
_IDLE_ROUNDS = 2
_STRIDE = 10
_STRIDE_LIMIT = 1000


def claim(ask: ClaimAsk) -> Steps[list[Attempt]]:
    memory = ask.memory or no_memory()
    attempts: list[Attempt] = []
    for want in ask.wants:
        attempts += yield from _claim_queue(ask, want, memory.place(want.queue))
    return attempts


def _claim_queue(ask: ClaimAsk, want: Want, place: Place) -> Steps[list[Attempt]]:
    """Claim until enough, or until nothing is left that this claimer could move."""
    attempts: list[Attempt] = []
    window = _Window()
    for _ in range(_ROUNDS):
        wanted = want.count - len(attempts)
        if place.is_limited:
            wanted -= want.ahead
        if wanted <= 0 or window.idle >= _IDLE_ROUNDS:
            break
        try:
            won, seen = yield from _claim_once(ask, want, wanted, wanted + window.past, place)
        except Conflict:
            continue  # another claimer won the same lane: now its holder can be seen
        except StoreError:
            place.forget()
            if attempts:  # what was won in the rounds before is ours
                break
            raise
        attempts += won
        if not _goes_on(place, won, seen):
            break
        window.move(wanted, len(won), seen.unsettled)
    attempts.sort(key=lambda attempt: (-attempt.priority, attempt.job_id))
    return attempts


def _goes_on(place: Place, won: list[Attempt], seen: _Seen) -> bool:
    """Remember what was seen. Whether another round could find more."""
    place.held_back = seen.held_back
    if (seen.limited, seen.shared) != (place.limited, place.shared) or seen.keys:
        place.limited, place.shared, place.keys = seen.limited, seen.shared, seen.keys
        return True  # with its locks
    place.keys = sorted({attempt.limit_key or "" for attempt in won} & set(place.keys))
    if seen.held_back:
        return False
    if seen.unsettled:
        return True
    for attempt in won:
        place.advance(-attempt.priority, attempt.job_id)
    return seen.more or place.back_to_start()


class _Window:
    """How far beyond what is wanted a claim looks.

    Candidates that lost their lane to a holder are put behind it, and make room for the next
    ones: where they stand in the way, look further each time. Those whose lane is just changing
    hands stay ready, and are looked past.
    """

    def __init__(self) -> None:
        self.past = 0
        self.idle = 0

    def move(self, wanted: int, won: int, unsettled: int) -> None:
        self.idle = 0 if won or unsettled < wanted + self.past else self.idle + 1
        further = 0 if won else min(2 * self.past + _STRIDE, _STRIDE_LIMIT)
        self.past = unsettled + further


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a claim has seen besides what it won."""

    more: bool
    unsettled: int
    keys: list[str]
    limited: bool
    held_back: bool
    shared: bool


def _claim_once(
    ask: ClaimAsk, want: Want, wanted: int, looked_at: int, place: Place
) -> Steps[tuple[list[Attempt], _Seen]]:
    rank, after = place.begin()
    statement = Statement(
        "claim",
        {
            "queue": want.queue,
            "wanted": wanted,
            "ahead": 0 if place.is_limited else want.ahead,
            "looked_at": looked_at,
            "rank": rank,
            "after": after,
            "locked": place.limited,
            "shared": place.shared,
            "keys": place.keys,
            "owner": ask.owner,
            "lease_seconds": ask.lease_seconds,
            "tasks": None if ask.tasks is None else sorted(ask.tasks),
        },
    )
    answers = yield from together(*_under_limits(want.queue, wanted, place), statement)
    place.looked()
    rows = answers[-1]
    *_, more, unsettled, keys, limited, held_back, weight, shared = rows[-1]
    place.weight = weight
    won = [attempt_of(row, ask.owner) for row in rows if row[0] is not None]
    return won, _Seen(
        bool(more), unsettled, msgspec.json.decode(keys) if keys else [], bool(limited),
        bool(held_back), bool(shared),
    )  # fmt: skip


def _under_limits(queue: str, wanted: int, place: Place) -> list[Statement]:
    """What a claim sends ahead where it knows of a limit."""
    statements = [_try_limits(queue, place)] if place.limited or place.keys else []
    if place.shared:
        statements.append(Statement("grant_leases", {"queue": queue, "wanted": wanted}))
    return statements


def _try_limits(queue: str, place: Place) -> Statement:
    names = [f"k/{key}" for key in place.keys]
    if place.limited:
        names += [f"q/{queue}", f"q/{ALL_QUEUES}"]
    return Statement("try_limits", {}, [{"name": name} for name in names])


def start(owner: str, leases: Sequence[LeaseKey]) -> Steps[tuple[int, ...]]:
    if not leases:
        return ()
    rows = yield from write("start", _keys(leases), owner=owner)
    return _missing(leases, {row[0] for row in rows})


def renew(
    owner: str,
    leases: Sequence[LeaseKey],
    lease_seconds: float,
    beat: Beat | None = None,
    beat_seconds: float = 0.0,
) -> Steps[Renewed]:
    if not leases:
        return Renewed({}, ())
    renewal = Statement("renew", {"owner": owner, "lease_seconds": lease_seconds}, _keys(leases))
    words = () if beat is None else (beat_statement(beat, beat_seconds),)
    rows = (yield from together(renewal, *words))[0]
    held = {row[0]: Request(row[1]) if row[1] else None for row in rows}
    return Renewed(held, _missing(leases, held.keys()))


def requests(owner: str) -> Steps[dict[LeaseKey, Request]]:
    rows = yield from read("requests", owner=owner)
    return {LeaseKey(row[0], row[1]): Request(row[2]) for row in rows}


def _keys(leases: Sequence[LeaseKey]) -> list[dict[str, int]]:
    return [{"id": lease.job_id, "token": lease.token} for lease in leases]


def _missing(leases: Sequence[LeaseKey], hit: set[int] | object) -> tuple[int, ...]:
    return tuple(lease.job_id for lease in leases if lease.job_id not in hit)  # type: ignore[operator]
