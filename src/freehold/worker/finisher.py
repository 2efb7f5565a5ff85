"""5. Outcomes -> the store, in groups that wait for nothing.

A flush starts as soon as the last one has ended, with all that came meanwhile: one job alone
is written at once, ten thousand in a few statements.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from freehold.errors import (
    OutcomeUnknown,
    SchemaMissing,
    SchemaTooNew,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from freehold.model.job import Error
from freehold.model.outcome import Decision, Outcome, OutcomeKind
from freehold.model.state import State
from freehold.store.types import AttemptEnd, Finished
from freehold.telemetry import Telemetry, fields, log
from freehold.worker.held_leases import HeldLease, HeldLeases

GROUP_LIMIT = 1000
#: With this many endings unwritten no more jobs are claimed.
BACKLOG_LIMIT = 10_000
#: What passes by itself, or once a person has seen to it. Anything else is about what is written.
_PASSING = (
    StoreUnavailable,
    OutcomeUnknown,
    StoreReadOnly,
    StoreFull,
    SchemaMissing,
    SchemaTooNew,
)
_UNSTORABLE = "its outcome could not be stored"
_RETRY_SECONDS = 0.2
_RETRY_CAP_SECONDS = 2.0


class FinishStore(Protocol):
    async def finish(self, owner: str, ended: Sequence[AttemptEnd]) -> Finished: ...


class Finisher:
    """Writes endings, fenced; what was refused is counted and forgotten."""

    def __init__(
        self,
        store: FinishStore,
        owner: str,
        hand: HeldLeases,
        telemetry: Telemetry,
        on_written: Callable[[bool], None],
    ) -> None:
        self._store = store
        self._owner = owner
        self._hand = hand
        self._telemetry = telemetry
        #: Told whether something has to be made ready at a later time.
        self._on_written = on_written
        self._waiting: deque[tuple[HeldLease, AttemptEnd]] = deque()
        self._something = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    def submit(self, held: HeldLease, ended: AttemptEnd) -> None:
        held.ended = True
        self._waiting.append((held, ended))
        self._something.set()
        self._empty.clear()

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= BACKLOG_LIMIT

    async def run(self) -> None:
        while True:
            await self._something.wait()
            group = self._next_group()
            if not self._waiting:
                self._something.clear()
            await self._write(group)
            if not self._waiting:
                self._empty.set()

    def _next_group(self) -> list[tuple[HeldLease, AttemptEnd]]:
        """In order, and one ending of a job: a worker that lost a lease can have the job again
        before the first ending could be written."""
        group: dict[int, tuple[HeldLease, AttemptEnd]] = {}
        while self._waiting and len(group) < GROUP_LIMIT:
            job_id = self._waiting[0][1].attempt.job_id
            if job_id in group:
                break
            group[job_id] = self._waiting.popleft()
        return list(group.values())

    async def flushed(self) -> None:
        """Until everything submitted has been written, or given up."""
        await self._empty.wait()

    async def _write(self, group: list[tuple[HeldLease, AttemptEnd]]) -> None:
        """Again and again while any of these leases can still hold: the keeper renews them."""
        loop = asyncio.get_running_loop()
        wait, waits = _RETRY_SECONDS, False
        while group:
            sent = self._telemetry.now()
            try:
                answer = await self._store.finish(self._owner, [ended for _, ended in group])
            except StoreError as error:
                self._telemetry.count("store_errors", label="finisher")
                if not isinstance(error, _PASSING):
                    await self._write_apart(group, error)
                    return
                log.warning("finishing failed, trying again: %s", error)
                group = self._still_held(group, loop.time())
                await asyncio.sleep(wait)
                wait = min(wait * 2, _RETRY_CAP_SECONDS)
                continue
            self._telemetry.measure("finish_seconds", self._telemetry.now() - sent)
            self._tell_all(group, answer)
            waits = any(decision.delay_seconds for decision in answer.decisions.values())
            break
        self._on_written(waits)

    async def _write_apart(
        self, group: list[tuple[HeldLease, AttemptEnd]], error: StoreError
    ) -> None:
        """The store refuses something in the group, and will again: find it, spare the others."""
        if len(group) > 1:
            half = len(group) // 2
            await self._write(group[:half])
            await self._write(group[half:])
            return
        held, ended = group[0]
        if ended.outcome.reason == _UNSTORABLE:
            log.error("job %d: its end cannot be stored: %s", ended.attempt.job_id, error)
            self._hand.let_go(held)  # the lease runs out, and recovery decides
            return
        log.error("job %d: its outcome cannot be stored: %s", ended.attempt.job_id, error)
        failure = Outcome(
            kind=OutcomeKind.FAIL,
            reason=_UNSTORABLE,
            error=Error(type(error).__name__, str(error)[:500]),
        )
        await self._write([(held, AttemptEnd(ended.attempt, failure, ended.request))])

    def _still_held(
        self, group: list[tuple[HeldLease, AttemptEnd]], now: float
    ) -> list[tuple[HeldLease, AttemptEnd]]:
        """Whose lease can have run out is somebody else's by now: nothing more is written."""
        for held, ended in group:
            if held.valid_until <= now:
                self._hand.let_go(held)
                self._tell(ended, None)
        return [each for each in group if each[0].valid_until > now]

    def _tell_all(self, group: list[tuple[HeldLease, AttemptEnd]], answer: Finished) -> None:
        succeeded = 0
        for held, ended in group:
            self._hand.let_go(held)
            decision = answer.decisions.get(ended.attempt.job_id)
            if decision is not None and ended.outcome.kind is OutcomeKind.SUCCESS:
                succeeded += 1  # most of them, of which there is nothing else to tell
            else:
                self._tell(ended, decision)
        if succeeded:
            self._telemetry.count("finished", succeeded, label=OutcomeKind.SUCCESS.value)

    def _tell(self, ended: AttemptEnd, decision: Decision | None) -> None:
        attempt = ended.attempt
        if decision is None:
            self._telemetry.count("stale_writes")
            log.warning(
                "job %d: its lease was lost, its end was refused",
                attempt.job_id,
                extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
            )
            return
        self._telemetry.count("finished", label=ended.outcome.kind.value)
        has_begun = ended.outcome.kind is not OutcomeKind.GIVE_BACK
        if decision.state is State.QUEUED and has_begun:
            self._telemetry.count("retried")
        if ended.outcome.kind is OutcomeKind.TIMEOUT:
            self._telemetry.count("timeouts")
        has_failed = decision.state is State.FAILED
        error = ended.outcome.error
        log.log(
            logging.ERROR if has_failed else logging.INFO,
            "job %d of %s, attempt %d: %s, now %s%s%s",
            attempt.job_id,
            attempt.task,
            attempt.number,
            ended.outcome.kind,
            decision.state,
            f" ({decision.reason})" if decision.reason else "",
            f"\n{error.trace}" if has_failed and error and error.trace else "",
            extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
        )
