"""The leases that a worker holds, shared by its event loop and its renewal thread.

A held lease is in one phase. `MOVES` is the same table in code; any other move is refused.

    phase           since                               next
    waiting         it was claimed                      running; ending (given back); lost
    running         its handler was started             in_transaction; ending; lost
    in_transaction  ctx.transaction() was entered       running; committing; ending; lost
    committing      its success is being written        finished; in_transaction (refused); ending
    finished        it has committed, or may have       -  the end of the handler has no effect
    ending          the finisher has its outcome        -  removed when that is written or refused
    lost            another worker may own the job      -  a late outcome is refused

From committing and ending on, the store decides whether the lease still held, not the renewer. A
thread that outlasts its stop can be in a transaction, or commit one, while its lease is ending.

Times are monotonic times of the event loops, which use one clock in both threads: the database
decides which worker owns a job, but a worker must know by itself from when on it can no longer rely
on its lease.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from freehold.model.job import Attempt, StopRequest
from freehold.store.types import LeaseKey

if TYPE_CHECKING:
    from freehold.model.outcome import Outcome
    from freehold.worker.job_log.buffer import JobLogBuffer


class StopReason(StrEnum):
    """Why a handler has to stop."""

    CANCELED = "canceled"
    PAUSED = "paused"
    TIMEOUT = "timeout"
    LEASE_LOST = "lease_lost"
    DRAIN = "drain"


class Phase(StrEnum):
    """Where a held lease is between its claim and its end."""

    WAITING = "waiting"
    RUNNING = "running"
    IN_TRANSACTION = "in_transaction"
    COMMITTING = "committing"
    FINISHED = "finished"
    ENDING = "ending"
    LOST = "lost"


MOVES: dict[Phase, frozenset[Phase]] = {
    Phase.WAITING: frozenset({Phase.RUNNING, Phase.ENDING, Phase.LOST}),
    Phase.RUNNING: frozenset({Phase.IN_TRANSACTION, Phase.ENDING, Phase.LOST}),
    Phase.IN_TRANSACTION: frozenset({Phase.RUNNING, Phase.COMMITTING, Phase.ENDING, Phase.LOST}),
    Phase.COMMITTING: frozenset({Phase.FINISHED, Phase.IN_TRANSACTION, Phase.ENDING}),
    Phase.FINISHED: frozenset(),
    Phase.ENDING: frozenset(),
    Phase.LOST: frozenset(),
}
#: In these the renewer decides by its own clock whether the lease still holds.
OPEN = frozenset({Phase.WAITING, Phase.RUNNING, Phase.IN_TRANSACTION})
#: After these, no transaction of the attempt is committed, and a result that its handler returns
#: does not count.
OVER = frozenset({StopReason.TIMEOUT, StopReason.LEASE_LOST})
STARTED = frozenset({Phase.RUNNING, Phase.IN_TRANSACTION})


class HeldLease(msgspec.Struct, eq=False):
    """One lease with the state of its attempt in this process. A struct, because every job has
    one."""

    attempt: Attempt
    #: The lease certainly holds until then: counted from when its claim or renewal was *sent*.
    valid_until: float
    claimed_at: float = 0.0
    #: While it waits it uses room under a limit that another worker could use.
    is_limited: bool = False
    #: The worker's loop, the renewer and the thread of a handler change the phase, under this lock.
    #: All leases of a worker share one: making a lock for each job takes longer than waiting.
    moving: threading.Lock = msgspec.field(default_factory=threading.Lock)
    phase: Phase = Phase.WAITING
    started_at: float | None = None
    #: Its transaction has succeeded for certain. If the response to the commit was lost, the lease
    #: is finished too, but the job may run again.
    has_committed: bool = False
    #: Its handler runs on the event loop.
    is_coroutine: bool = False
    #: The end of the execution timeout.
    deadline: float | None = None
    #: The store shows the job as running, no longer as assigned.
    marked_running: bool = False
    #: None for handlers without a context.
    log_buffer: JobLogBuffer | None = None
    #: Set by the context, as by a suspension: how the handler itself ends has no effect then.
    ended_by_context: Outcome | None = None
    request: StopRequest | None = None
    stop_reason: StopReason | None = None
    #: The handler has read its stop reason.
    saw_stop: bool = False
    on_stop: Callable[[StopReason], None] | None = None
    #: Breaks off a statement in the transaction of a plain function, which could not be committed
    #: any more: see `OVER`.
    interrupt: Callable[[], None] | None = None

    @property
    def key(self) -> LeaseKey:
        return LeaseKey(self.attempt.job_id, self.attempt.token)

    def move_to(self, phase: Phase) -> bool:
        """Returns whether it is in that phase now; a move that `MOVES` has not is refused."""
        with self.moving:
            if phase in MOVES[self.phase]:
                self.phase = phase
            return self.phase is phase

    def was_stopped_by(self, *reasons: StopReason) -> bool:
        return self.stop_reason in reasons

    def stop(self, reason: StopReason) -> bool:
        """Stop the handler, once. A lost lease replaces an earlier reason."""
        if self.stop_reason is not None and reason is not StopReason.LEASE_LOST:
            return False
        if self.stop_reason is StopReason.LEASE_LOST:
            return False
        self.stop_reason = reason
        if self.on_stop is not None:
            self.on_stop(reason)
        if reason in OVER and self.interrupt is not None:
            self.interrupt()
        return True


class HeldLeases:
    """All leases of one worker. Each operation is atomic under the interpreter's lock."""

    def __init__(self) -> None:
        self._by_job: dict[int, HeldLease] = {}
        self.moving = threading.Lock()

    def add(self, lease: HeldLease) -> None:
        self._by_job[lease.attempt.job_id] = lease

    def remove(self, lease: HeldLease) -> None:
        if self._by_job.get(lease.attempt.job_id) is lease:
            self._by_job.pop(lease.attempt.job_id, None)  # two threads may remove it at once

    def abandon(self, lease: HeldLease) -> None:
        """Unless its outcome is being written: the lease expires, and recovery decides."""
        if lease.move_to(Phase.LOST):
            lease.stop(StopReason.LEASE_LOST)
            self.remove(lease)

    def get(self, key: LeaseKey) -> HeldLease | None:
        lease = self._by_job.get(key.job_id)
        return lease if lease is not None and lease.attempt.token == key.token else None

    def all(self) -> list[HeldLease]:
        return list(self._by_job.values())

    def __len__(self) -> int:
        return len(self._by_job)
