"""Claiming: a ready job becomes an attempt under a lease.

The plain claim (`claim_plain`) looks at order only. If it meets a job with a lane, a limit, a pause
or an unknown task, or one that once lost its worker, it leases nothing, and the full claim
(`claim`) decides. The cursor remembers what was met, so that the next claim begins with the right
one.

A cursor also remembers where the last claim ended. Claimed and finished jobs stay in the index
until they are vacuumed, and vacuum cannot remove rows that an old transaction might still read. A
claim that starts at the head of the index then walks over all of them. So a claim continues after
the last one, and starts at the head again often enough that no job waits long in front of the
cursor: a higher priority, a retry under its old id, a late commit. How often follows from what such
a claim costs: after twenty times as long, but within a second; at once if it is cheap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import msgspec

from freehold.errors import StoreError
from freehold.model.job import Attempt
from freehold.model.limit import ALL_QUEUES
from freehold.store.statements import (
    LANE_INDEX,
    Conflict,
    Rows,
    Statement,
    StatementGroup,
    Verb,
    read,
    together,
)
from freehold.store.types import ClaimRequest, QueueDemand

#: Maximum rounds of one claim. A round can end without a lease because it only moved followers
#: aside, or because another claimer had locked the rows.
_ROUNDS = 50
#: Rounds in a row that changed nothing: other claimers have locked the rest.
_IDLE_ROUNDS = 2
#: How many columns of a claim are those of an attempt: see `_attempt_columns.sql`.
_ATTEMPT_COLUMNS = 15
_STRIDE = 10
_STRIDE_LIMIT = 1000

START = (-32768, 0)
#: Reads from the head of the index may take this share of the time, as far as pauses of a second
#: allow it.
HEAD_SHARE = 1 / 20
_SOONEST, _LATEST = 0.01, 1.0
#: One that takes less than this is cheap enough to be repeated at once.
CHEAP_HEAD_SECONDS = 0.005
#: After a lane, a limit or a pause was met, more of them are expected for this long.
_SPECIAL_SECONDS = 1.0


def claim(request: ClaimRequest, cursors: ClaimCursors | None = None) -> Verb[list[Attempt]]:
    """Lease ready jobs: highest priority first, then oldest. Counts an attempt, never returns a job
    twice for a token. On PostgreSQL it never waits for another claimer; on SQLite writers take
    turns. A ready job has no stop request: `transition` has cleared it. Jobs of tasks that the
    claimer does not know are parked. Never leaves more live leases than a limit allows. A job that
    is limited, or lost its worker before, is not prefetched. ``cursors``: those of the claimer."""
    if cursors is None:
        cursors = no_cursors()
    attempts: list[Attempt] = []
    for demand in request.demands:
        attempts += yield from _claim_queue(request, demand, cursors[demand.queue])
    return attempts


def _claim_queue(
    request: ClaimRequest, demand: QueueDemand, cursor: ClaimCursor
) -> Verb[list[Attempt]]:
    """Claim until the demand is met, or until no job is left that this claimer could take."""
    attempts: list[Attempt] = []
    window = _Window()
    for _ in range(_ROUNDS):
        wanted = demand.count - len(attempts)
        if cursor.is_limited:
            wanted -= demand.ahead
        if wanted <= 0 or window.idle >= _IDLE_ROUNDS:
            break
        try:
            if cursor.is_plain:
                won, found = yield from _claim_plain(request, demand.queue, wanted, cursor)
            else:
                examined = wanted + window.past
                won, found = yield from _claim_fully(request, demand, wanted, examined, cursor)
        except StoreError as error:
            if isinstance(error, Conflict) and error.index == LANE_INDEX:
                continue  # another claimer took the same lane: its holder is visible now
            cursor.reset()
            if attempts:  # the leases of earlier rounds are committed
                break
            raise
        attempts += won
        if _update_cursor(cursor, won, found):
            window.move(wanted, len(won), found)
        # If this call already has attempts, return them: the next claim starts at the head of the
        # index, if that is cheap.
        elif found.limit_reached or not cursor.back_to_start() or attempts:
            break
    attempts.sort(key=attrgetter("job_id"))
    attempts.sort(key=attrgetter("priority"), reverse=True)  # keeps the order of equal ones
    return attempts


def _update_cursor(cursor: ClaimCursor, won: list[Attempt], found: _Found) -> bool:
    """Returns whether another round could find more."""
    cursor.limit_reached = found.limit_reached
    if found.needs_full_claim:
        cursor.met_special()
    if found.was_skipped:
        return True  # by the full claim
    if (found.limited, found.shared) != (cursor.has_limit, cursor.shared) or found.keys:
        cursor.met_limits(limited=found.limited, shared=found.shared, keys=found.keys)
        return True  # under the locks of these limits
    if cursor.keys:
        cursor.keys = sorted({attempt.limit_key or "" for attempt in won} & set(cursor.keys))
    if found.limit_reached:
        return False
    if found.undecided:
        return True
    if won:
        cursor.advance(max((-attempt.priority, attempt.job_id) for attempt in won))
    return found.more


@dataclass(slots=True)
class _Window:
    """How many candidates beyond the demand a claim examines.

    A candidate whose lane is held leaves the ready set and makes room for the next one: while such
    candidates come first, each round examines more. A candidate whose lane is just changing its
    holder stays ready, and is passed over.
    """

    past: int = 0
    idle: int = 0

    def move(self, wanted: int, won: int, found: _Found) -> None:
        if found.was_skipped:
            return
        self.idle = 0 if won or found.undecided < wanted + self.past else self.idle + 1
        further = 0 if won else min(2 * self.past + _STRIDE, _STRIDE_LIMIT)
        self.past = found.undecided + further


@dataclass(frozen=True, slots=True)
class _Found:
    """What a claim found besides its attempts."""

    more: bool
    #: A candidate has a lane, limit, pause or unknown task.
    needs_full_claim: bool
    #: The plain claim therefore leased nothing.
    was_skipped: bool = False
    #: Candidates that stayed ready.
    undecided: int = 0
    keys: Sequence[str] = ()
    limited: bool = False
    limit_reached: bool = False
    shared: bool = False


def attempts_of(rows: Rows, owner: str) -> list[Attempt]:
    """Rows begin with the columns of an attempt; those without a job are left out. Unpacked here
    and not named, because claims return many of them: a NamedTuple takes six times as long."""
    return [
        Attempt(
            job_id,
            owner,
            token,
            task,
            queue,
            args,
            number,
            max_attempts,
            lost_attempts,
            priority,
            target,
            timeout_seconds,
            policy,
            limit_key,
            meta,
            bool(misfit_time_is_over),
        )
        for (
            job_id,
            token,
            task,
            queue,
            args,
            number,
            max_attempts,
            lost_attempts,
            priority,
            target,
            timeout_seconds,
            policy,
            limit_key,
            meta,
            misfit_time_is_over,
            *_,
        ) in rows
        if job_id is not None
    ]


class _PlainColumns(NamedTuple):
    """What `claim_plain` returns beside the attempts: complete in its last row."""

    more: bool
    needs_full_claim: bool
    weight: float


class _FullColumns(NamedTuple):
    """The same for `claim`. Keys and tasks are JSON."""

    more: bool
    undecided: int
    keys: str | None
    limited: bool
    limit_reached: bool
    weight: float
    shared: bool
    unknown_tasks: str | None


def _claim_plain(
    request: ClaimRequest, queue: str, wanted: int, cursor: ClaimCursor
) -> Verb[tuple[list[Attempt], _Found]]:
    """Where only the order has mattered recently."""
    rank, after = cursor.begin()
    statement = Statement(
        "claim_plain",
        {
            "queue": queue,
            "wanted": wanted,
            "rank": rank,
            "after": after,
            "owner": request.owner,
            "lease_seconds": request.lease_seconds,
            "tasks": None if request.tasks is None else sorted(request.tasks),
        },
    )
    (rows,) = yield StatementGroup((statement,), writes=True)
    cursor.ended()
    beside = _PlainColumns._make(rows[-1][_ATTEMPT_COLUMNS:])
    cursor.weight, is_special = beside.weight, bool(beside.needs_full_claim)
    found = _Found(bool(beside.more), needs_full_claim=is_special, was_skipped=is_special)
    return attempts_of(rows, request.owner), found


def _claim_fully(
    request: ClaimRequest, demand: QueueDemand, wanted: int, examined: int, cursor: ClaimCursor
) -> Verb[tuple[list[Attempt], _Found]]:
    """Decides about lanes, limits, pauses and unknown tasks of the examined jobs."""
    rank, after = cursor.begin()
    statement = Statement(
        "claim",
        {
            "queue": demand.queue,
            "wanted": wanted,
            "ahead": 0 if cursor.is_limited else demand.ahead,
            "examined": examined,
            "rank": rank,
            "after": after,
            "locked": cursor.has_limit,
            "shared": cursor.shared,
            "keys": cursor.keys,
            "owner": request.owner,
            "lease_seconds": request.lease_seconds,
            "tasks": None if request.tasks is None else sorted(request.tasks),
        },
    )
    answers = yield from together(*_under_limits(demand.queue, wanted, cursor), statement)
    cursor.ended()
    rows = answers[-1]
    won = attempts_of(rows, request.owner)
    beside = _FullColumns._make(rows[-1][_ATTEMPT_COLUMNS:])
    cursor.weight = beside.weight
    cursor.unknown_tasks.update(_names(beside.unknown_tasks))
    keys = _names(beside.keys)
    lanes = any(attempt.target is not None or attempt.limit_key is not None for attempt in won)
    return won, _Found(
        bool(beside.more),
        needs_full_claim=bool(lanes or beside.undecided or keys or beside.limited or beside.shared),
        undecided=beside.undecided,
        keys=keys,
        limited=bool(beside.limited),
        limit_reached=bool(beside.limit_reached),
        shared=bool(beside.shared),
    )


def _names(text: str | None) -> list[str]:
    return msgspec.json.decode(text) if text else []


def _under_limits(queue: str, wanted: int, cursor: ClaimCursor) -> list[Statement]:
    """Statements in front of the claim that lock the known limits."""
    names = [f"k/{key}" for key in cursor.keys]
    if cursor.has_limit:
        names += [f"q/{queue}", f"q/{ALL_QUEUES}"]
    statements = [Statement("try_limits", {}, [{"name": name} for name in names])] if names else []
    if cursor.shared:
        statements.append(Statement("grant_leases", {"queue": queue, "wanted": wanted}))
    return statements


# -- cursors -------------------------------------------------------------------------------------


class ClaimCursor:
    """One queue, as one claimer knows it."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._after = START
        self._restart_at = 0.0
        # The minimum of a few: one claim can be slow for other reasons.
        self._costs: deque[float] = deque(maxlen=3)
        self._began = 0.0
        #: Whether the queue has a limit, and which keys with a limit it had: known from the last
        #: claim, so that the next one takes its locks at once.
        self.has_limit = False
        self.keys: list[str] = []
        #: Whether all tenants of the database share a limit.
        self.shared = False
        #: The queue has a limit, or the tenants share one: all its jobs are limited. They are never
        #: prefetched, because they would take room from other workers.
        self.is_limited = False
        #: A limit stopped the last claim. Room under it can come back without a notification.
        self.limit_reached = False
        self.weight = 1.0
        #: Tasks that the claimer did not know. The claimer removes them once it has logged them.
        self.unknown_tasks: set[str] = set()
        self._plain_from = 0.0

    @property
    def is_plain(self) -> bool:
        """True if within the last second nothing was met but plain jobs, so that the plain claim is
        worth trying."""
        return self._now() >= self._plain_from

    def met_special(self) -> None:
        self._plain_from = self._now() + _SPECIAL_SECONDS

    def met_limits(self, *, limited: bool, shared: bool, keys: Sequence[str]) -> None:
        self.has_limit, self.shared, self.keys = limited, shared, list(keys)
        self.is_limited = limited or shared

    def begin(self) -> tuple[int, int]:
        """Returns the (rank, id) after which this claim begins."""
        self._began = self._now()
        if self._began >= self._restart_at:
            self._after = START
        return self._after

    def ended(self) -> None:
        """The claim has returned: record what a claim from the head of the index costs."""
        if self._after == START:
            ended = self._now()
            self._costs.append(ended - self._began)
            pause = min(max(min(self._costs) / HEAD_SHARE, _SOONEST), _LATEST)
            self._restart_at = ended + pause

    def advance(self, last: tuple[int, int]) -> None:
        """Jobs up to this (rank, id) are claimed."""
        self._after = max(self._after, last)

    def back_to_start(self) -> bool:
        """For when no job is left after the cursor. The next claim begins at the head, if that is
        cheap. Returns whether it does, and the last one did not."""
        if self._after == START or min(self._costs, default=0.0) >= CHEAP_HEAD_SECONDS:
            return False
        self._after = START
        return True

    def unsure_seconds(self) -> float:
        """How long until the jobs in front of the cursor are claimed. 0: the last claim began at
        the head, and found what there is."""
        return 0.0 if self._after == START else max(0.001, self._restart_at - self._now())

    def reset(self) -> None:
        """After an error it is unknown what was skipped."""
        self._after = START


class ClaimCursors(dict[str, ClaimCursor]):
    """The cursors of one claimer, by queue. That of a new queue is made when it is looked up."""

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__()
        self._now = now

    def __missing__(self, queue: str) -> ClaimCursor:
        cursor = self[queue] = ClaimCursor(self._now)
        return cursor

    def reset(self) -> None:
        """The store is unreachable: jobs in front of a cursor are no reason to claim sooner."""
        for cursor in self.values():
            cursor.reset()


def no_cursors() -> ClaimCursors:
    """For a single claim, which always begins at the head."""
    return ClaimCursors(lambda: 0.0)


# -- queues --------------------------------------------------------------------------------------


def ready_queues(after: str, limit: int) -> Verb[list[str]]:
    """Open queues with ready jobs, by name, beyond ``after``: for workers without named queues."""
    rows = yield from read("ready_queues", after=after, limit=limit)
    return [queue for (queue,) in rows]
