"""Outcomes -> the store, in groups, without waiting for a group to fill.

A write starts as soon as the previous one has ended, with all outcomes that came meanwhile: one
job alone is written at once, ten thousand jobs in a few statements.

Ends other than success are written by another statement, in groups of their own: a group is one
transaction, and is sent again as a whole. The statement costs as much for one end as for twenty. So
while successes are written all the time, other ends wait for each other, but not for long.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from freehold.errors import StoreError
from freehold.model.job import ErrorInfo, StopRequest
from freehold.model.outcome import NEVER_STARTED, SUCCEEDED, Decision, Outcome, OutcomeKind
from freehold.model.state import State
from freehold.store.types import AttemptEnd, Finished
from freehold.store_health import PASSING
from freehold.telemetry import Telemetry, fields, log
from freehold.worker.ended_calls import EndedCalls
from freehold.worker.execution import outcomes
from freehold.worker.flow_folder import AdvanceStore, FlowFolder
from freehold.worker.held_leases import HeldLease, HeldLeases, Phase, StopReason
from freehold.worker.wakeups import Wakeups

GROUP_LIMIT = 1000
#: With this many outcomes unwritten no more jobs are claimed.
BACKLOG_LIMIT = 10_000
#: Other ends that wait for each other beside successes: at most so many, and for so long.
_OTHERS_LIMIT = 100
_OTHERS_SECONDS = 0.02
_NO_RETRIES = NEVER_STARTED | {OutcomeKind.SUSPEND}
_REQUEST_OF_STOP = {
    StopReason.CANCELED: StopRequest.CANCEL,
    StopReason.PAUSED: StopRequest.PAUSE,
}
#: The end of a job whose own transaction has finished it.
_BY_TRANSACTION = Outcome(kind=OutcomeKind.SUCCESS)
_UNSTORABLE = "its outcome could not be stored"
_REFUSED = "job %d: its lease was lost, its outcome was refused"
_NOT_IN_TIME = "job %d: its lease was lost, its outcome could not be written in time"
_RETRY_SECONDS = 0.2
#: Short, because the leases of these outcomes may run out.
_RETRY_LIMIT_SECONDS = 2.0


class FinishStore(AdvanceStore, Protocol):
    async def finish(self, owner: str, ended: Sequence[AttemptEnd]) -> Finished: ...


class Finisher:
    """Writes outcomes, fenced by their leases. Refused writes are counted and logged."""

    def __init__(
        self,
        store: FinishStore,
        owner: str,
        leases: HeldLeases,
        telemetry: Telemetry,
        wakeups: Wakeups,
        chance: Callable[[], float],
        ended: EndedCalls | None = None,
    ) -> None:
        self._store = store
        self._owner = owner
        self._leases = leases
        self._telemetry = telemetry
        self._store_part = telemetry.store_health.part("finisher")
        self._wakeups = wakeups
        self._chance = chance
        self._ended = ended
        self.folder = FlowFolder(store, telemetry, wakeups, leases)
        self._successes: deque[tuple[HeldLease, AttemptEnd]] = deque()
        self._others: deque[tuple[HeldLease, AttemptEnd]] = deque()
        self._others_since = 0.0
        #: The last group had other ends.
        self._wrote_others = False
        self._not_empty = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    def submit(self, lease: HeldLease, outcome: Outcome | None) -> None:
        """None: the lease is lost, or the handler's transaction has finished the job."""
        if outcome is None:
            if self._ended is not None and lease.has_committed:
                self._ended.add(lease.attempt, _BY_TRANSACTION, SUCCEEDED)
            self._leases.remove(lease)
            if lease.has_committed and (flow := lease.attempt.policy.flow) is not None:
                self.folder.add([flow])
            return
        request = lease.request
        if lease.stop_reason is not None:
            # The request that stopped the handler, not one that has replaced it since.
            request = _REQUEST_OF_STOP.get(lease.stop_reason, request)
        ended = AttemptEnd(lease.attempt, outcome, request, self._chance())
        lease.move_to(Phase.ENDING)
        if not (self._successes or self._others):
            self._not_empty.set()
            self._empty.clear()
        if outcome.kind is OutcomeKind.SUCCESS:
            self._successes.append((lease, ended))
        else:
            if not self._others:
                self._others_since = asyncio.get_running_loop().time()
            self._others.append((lease, ended))

    @property
    def is_full(self) -> bool:
        return len(self._successes) + len(self._others) >= BACKLOG_LIMIT

    async def run(self) -> None:
        with self._store_part:
            while True:
                await self._not_empty.wait()
                group = self._next_group()
                if not (self._successes or self._others):
                    self._not_empty.clear()
                await self._write(group)
                if not (self._successes or self._others):
                    self._empty.set()

    def _next_group(self) -> list[tuple[HeldLease, AttemptEnd]]:
        """In order, and at most one outcome per job: a worker that lost a lease can run the job
        again before the first outcome was written."""
        group: dict[int, tuple[HeldLease, AttemptEnd]] = {}
        self._wrote_others = bool(self._others) and (
            not self._successes or self._is_turn_of_others()
        )
        ends = self._others if self._wrote_others else self._successes
        while ends and len(group) < GROUP_LIMIT:
            job_id = ends[0][1].attempt.job_id
            if job_id in group:
                break
            group[job_id] = ends.popleft()
        return list(group.values())

    def _is_turn_of_others(self) -> bool:
        if self._wrote_others:
            return False
        waited = asyncio.get_running_loop().time() - self._others_since
        return len(self._others) >= _OTHERS_LIMIT or waited >= _OTHERS_SECONDS

    async def flushed(self) -> None:
        """Waits until every submitted outcome is written or refused."""
        await self._empty.wait()

    async def _write(self, group: list[tuple[HeldLease, AttemptEnd]]) -> None:
        """Retries while any of these leases can still hold: the renewer renews them. An outcome
        that was stored without a response is refused in the next try, and reported as refused."""
        loop = asyncio.get_running_loop()
        has_scheduled = False
        while group:
            sent = self._telemetry.now()
            try:
                finished = await self._store.finish(self._owner, [ended for _, ended in group])
            except StoreError as error:
                self._telemetry.count("store_errors", label="finisher")
                if not isinstance(error, PASSING):  # it is about the written data
                    await self._write_halves(group, error)
                    return
                wait = self._store_part.failed(error, _RETRY_SECONDS, _RETRY_LIMIT_SECONDS)
                group = self._still_held(group, loop.time())
                await self._store_part.wait(wait)
                continue
            if self._telemetry.store_health.is_disturbed:
                self._store_part.works()
            self._telemetry.measure("finish_seconds", self._telemetry.now() - sent)
            has_scheduled = self._report_group(group, finished)
            if finished.flows:
                self.folder.add(finished.flows)
            break
        else:  # no lease is left
            self._store_part.leave()
        self._wakeups.claim.set()
        if has_scheduled:
            self._wakeups.sweep.set()

    async def _write_halves(
        self, group: list[tuple[HeldLease, AttemptEnd]], error: StoreError
    ) -> None:
        """The store refuses an outcome of the group for good: find it, and write all others."""
        if len(group) > 1:
            half = len(group) // 2
            await self._write(group[:half])
            await self._write(group[half:])
            return
        lease, ended = group[0]
        if ended.outcome.reason == _UNSTORABLE:
            log.error("job %d: its failure cannot be stored: %s", ended.attempt.job_id, error)
            self._leases.remove(lease)  # the lease runs out, and recovery decides
            return
        log.error("job %d: its outcome cannot be stored: %s", ended.attempt.job_id, error)
        failure = Outcome(
            kind=OutcomeKind.FAIL,
            reason=_UNSTORABLE,
            error=ErrorInfo(outcomes.type_name(error), str(error)[:500]),
        )
        await self._write([(lease, AttemptEnd(ended.attempt, failure, ended.request))])

    def _still_held(
        self, group: list[tuple[HeldLease, AttemptEnd]], now: float
    ) -> list[tuple[HeldLease, AttemptEnd]]:
        """Drops outcomes with a lease that may have run out: another worker may own the job."""
        for lease, ended in group:
            if lease.valid_until <= now:
                self._leases.remove(lease)
                self._report(ended, None, _NOT_IN_TIME)
        return [(lease, ended) for lease, ended in group if lease.valid_until > now]

    def _report_group(self, group: list[tuple[HeldLease, AttemptEnd]], finished: Finished) -> bool:
        """Returns whether a job was scheduled for later."""
        succeeded, has_scheduled = 0, False
        for lease, ended in group:
            self._leases.remove(lease)
            decision = finished.decisions.get(ended.attempt.job_id)
            if decision is SUCCEEDED:
                succeeded += 1  # most of them: counted together, and not logged
            else:
                self._report(ended, decision)
                has_scheduled |= decision is not None and bool(decision.delay_seconds)
        if succeeded:
            self._telemetry.count("finished", succeeded, label=OutcomeKind.SUCCESS.value)
        if self._ended is not None and self._ended.extensions:
            for _, ended in group:
                if (decision := finished.decisions.get(ended.attempt.job_id)) is not None:
                    self._ended.add(ended.attempt, ended.outcome, decision)
        return has_scheduled

    def _report(
        self, ended: AttemptEnd, decision: Decision | None, refusal: str = _REFUSED
    ) -> None:
        attempt = ended.attempt
        if decision is None:
            self._telemetry.count("stale_writes", label="finish")
            log.warning(
                refusal,
                attempt.job_id,
                extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
            )
            return
        self._telemetry.count("finished", label=ended.outcome.kind.value)
        is_retry = ended.outcome.kind not in _NO_RETRIES
        if decision.state is State.QUEUED and is_retry:
            self._telemetry.count("retried")
        if ended.outcome.kind is OutcomeKind.TIMEOUT:
            self._telemetry.count("timeouts")
        has_failed = decision.state is State.FAILED
        level = logging.ERROR if has_failed else logging.INFO
        if not log.isEnabledFor(level):
            return
        error, reason = ended.outcome.error, decision.reason
        log.log(
            level,
            "job %d of %s: %s after attempt %d (%s)%s%s",
            attempt.job_id,
            attempt.task,
            decision.state + (f" by {decision.requested_by}" if decision.requested_by else ""),
            attempt.number,
            ended.outcome.kind,
            f": {reason}" if reason and reason != decision.state else "",
            f"\n{error.trace}" if has_failed and error and error.trace else "",
            extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
        )
