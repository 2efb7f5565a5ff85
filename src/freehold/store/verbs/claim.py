"""2. A ready job becomes an attempt under a lease; the lease goes on while it is renewed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from freehold.errors import StoreError
from freehold.model.job import Attempt, Request
from freehold.model.limit import ALL_QUEUES
from freehold.model.worker_info import Heartbeat
from freehold.store.claim_cursor import ClaimCursor, no_cursors
from freehold.store.rows import attempt_of
from freehold.store.statements import Conflict, Rows, Statement, Verb, read, together, write
from freehold.store.types import ClaimRequest, LeaseKey, QueueDemand, Renewed
from freehold.store.verbs.workers import heartbeat_statement

#: Rounds of one claim: each demotes lane jobs that met a held lane, or meets another claimer.
_ROUNDS = 50
#: Rounds in a row that moved nothing: the rest is in other claimers' hands just now.
_IDLE_ROUNDS = 2
_STRIDE = 10
_STRIDE_LIMIT = 1000


def claim(ask: ClaimRequest) -> Verb[list[Attempt]]:
    memory = ask.memory or no_cursors()
    attempts: list[Attempt] = []
    for want in ask.wants:
        attempts += yield from _claim_queue(ask, want, memory.place(want.queue))
    return attempts


def _claim_queue(ask: ClaimRequest, want: QueueDemand, place: ClaimCursor) -> Verb[list[Attempt]]:
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
            won, seen = yield from _claim_once(ask, want, wanted, window.past, place)
        except Conflict:
            continue  # another claimer won the same lane: now its holder can be seen
        except StoreError:
            place.forget()
            if attempts:  # what was won in the rounds before is ours
                break
            raise
        attempts += won
        if _goes_on(place, won, seen):
            window.move(wanted, len(won), seen)
        # What was won waits for no other look from the start: the next claim begins there.
        elif seen.held_back or not place.back_to_start() or attempts:
            break
    attempts.sort(key=lambda attempt: (-attempt.priority, attempt.job_id))
    return attempts


def _goes_on(place: ClaimCursor, won: list[Attempt], seen: _Seen) -> bool:
    """Remember what was seen. Whether another round could find more beyond."""
    place.held_back = seen.held_back
    if seen.odd:
        place.meet_odd()
    if seen.left_out:
        return True  # with all that is to be considered
    if (seen.limited, seen.shared) != (place.limited, place.shared) or seen.keys:
        place.limited, place.shared, place.keys = seen.limited, seen.shared, list(seen.keys)
        return True  # with its locks
    place.keys = sorted({attempt.limit_key or "" for attempt in won} & set(place.keys))
    if seen.held_back:
        return False
    if seen.unsettled:
        return True
    for attempt in won:
        place.advance(-attempt.priority, attempt.job_id)
    return seen.more


class _Window:
    """How far beyond what is wanted a claim looks.

    Candidates that lost their lane to a holder are put behind it, and make room for the next
    ones: where they stand in the way, look further each time. Those whose lane is just changing
    hands stay ready, and are looked past.
    """

    def __init__(self) -> None:
        self.past = 0
        self.idle = 0

    def move(self, wanted: int, won: int, seen: _Seen) -> None:
        if seen.left_out:
            return
        self.idle = 0 if won or seen.unsettled < wanted + self.past else self.idle + 1
        further = 0 if won else min(2 * self.past + _STRIDE, _STRIDE_LIMIT)
        self.past = seen.unsettled + further


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a claim has seen besides what it won."""

    more: bool
    #: Something besides who comes first has to be considered,
    odd: bool
    #: and was not.
    left_out: bool = False
    unsettled: int = 0
    keys: Sequence[str] = ()
    limited: bool = False
    held_back: bool = False
    shared: bool = False


def _claim_once(
    ask: ClaimRequest, want: QueueDemand, wanted: int, past: int, place: ClaimCursor
) -> Verb[tuple[list[Attempt], _Seen]]:
    if place.is_plain:
        return (yield from _claim_plain(ask, want.queue, wanted, place))
    return (yield from _claim_carefully(ask, want, wanted, past, place))


def _claim_plain(
    ask: ClaimRequest, queue: str, wanted: int, place: ClaimCursor
) -> Verb[tuple[list[Attempt], _Seen]]:
    """Where nothing was odd of late."""
    rank, after = place.begin()
    rows = yield from write(
        "claim_plain",
        queue=queue,
        wanted=wanted,
        rank=rank,
        after=after,
        owner=ask.owner,
        lease_seconds=ask.lease_seconds,
        tasks=_tasks(ask),
    )
    place.looked()
    *_, more, odd, place.weight = rows[-1]
    return _won(rows, ask), _Seen(bool(more), odd=bool(odd), left_out=bool(odd))


def _claim_carefully(
    ask: ClaimRequest, want: QueueDemand, wanted: int, past: int, place: ClaimCursor
) -> Verb[tuple[list[Attempt], _Seen]]:
    rank, after = place.begin()
    statement = Statement(
        "claim",
        {
            "queue": want.queue,
            "wanted": wanted,
            "ahead": 0 if place.is_limited else want.ahead,
            "looked_at": wanted + past,
            "rank": rank,
            "after": after,
            "locked": place.limited,
            "shared": place.shared,
            "keys": place.keys,
            "owner": ask.owner,
            "lease_seconds": ask.lease_seconds,
            "tasks": _tasks(ask),
        },
    )
    answers = yield from together(*_under_limits(want.queue, wanted, place), statement)
    place.looked()
    rows = answers[-1]
    *_, more, unsettled, keys, limited, held_back, weight, shared = rows[-1]
    place.weight = weight
    won = _won(rows, ask)
    lanes = any(attempt.target is not None or attempt.limit_key is not None for attempt in won)
    return won, _Seen(
        bool(more),
        odd=bool(lanes or unsettled or keys or limited or shared),
        unsettled=unsettled,
        keys=msgspec.json.decode(keys) if keys else [],
        limited=bool(limited),
        held_back=bool(held_back),
        shared=bool(shared),
    )


def _won(rows: Rows, ask: ClaimRequest) -> list[Attempt]:
    return [attempt_of(row, ask.owner) for row in rows if row[0] is not None]


def _tasks(ask: ClaimRequest) -> list[str] | None:
    return None if ask.tasks is None else sorted(ask.tasks)


def _under_limits(queue: str, wanted: int, place: ClaimCursor) -> list[Statement]:
    """What a claim sends ahead where it knows of a limit."""
    statements = [_try_limits(queue, place)] if place.limited or place.keys else []
    if place.shared:
        statements.append(Statement("grant_leases", {"queue": queue, "wanted": wanted}))
    return statements


def _try_limits(queue: str, place: ClaimCursor) -> Statement:
    names = [f"k/{key}" for key in place.keys]
    if place.limited:
        names += [f"q/{queue}", f"q/{ALL_QUEUES}"]
    return Statement("try_limits", {}, [{"name": name} for name in names])


def start(
    owner: str, leases: Sequence[LeaseKey], ran_seconds: Sequence[float] | None = None
) -> Verb[tuple[int, ...]]:
    if not leases:
        return ()
    ran = ran_seconds or [0.0] * len(leases)
    told = [
        {**key, "ran_seconds": seconds} for key, seconds in zip(_keys(leases), ran, strict=True)
    ]
    rows = yield from write("start", told, owner=owner)
    return _missing(leases, {row[0] for row in rows})


def renew(
    owner: str,
    leases: Sequence[LeaseKey],
    lease_seconds: float,
    beat: Heartbeat | None = None,
    beat_seconds: float = 0.0,
) -> Verb[Renewed]:
    if not leases:
        return Renewed({}, ())
    renewal = Statement("renew", {"owner": owner, "lease_seconds": lease_seconds}, _keys(leases))
    words = () if beat is None else (heartbeat_statement(beat, beat_seconds),)
    rows = (yield from together(renewal, *words))[0]
    held = {row[0]: Request(row[1]) if row[1] else None for row in rows}
    return Renewed(held, _missing(leases, held.keys()))


def requests(owner: str) -> Verb[dict[LeaseKey, Request]]:
    rows = yield from read("requests", owner=owner)
    return {LeaseKey(row[0], row[1]): Request(row[2]) for row in rows}


def _keys(leases: Sequence[LeaseKey]) -> list[dict[str, int]]:
    return [{"id": lease.job_id, "token": lease.token} for lease in leases]


def _missing(leases: Sequence[LeaseKey], hit: set[int] | object) -> tuple[int, ...]:
    return tuple(lease.job_id for lease in leases if lease.job_id not in hit)  # type: ignore[operator]
