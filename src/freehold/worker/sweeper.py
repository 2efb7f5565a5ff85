"""Recovers expired leases, cancels jobs that are too late, makes due jobs ready, returns parked
jobs, delivers signals, advances flows, fires schedules, carries out bulk operations, deletes old
history, promotes stalled lanes. `Sweeper._sweep` has all of it in its order.

Every worker runs a sweeper. Each step is bounded, holds no lock between statements, and is safe
when several workers take it at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Protocol

from freehold.errors import RowRefused, StoreError, StoreUnavailable
from freehold.model.job import Job
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.plural import count
from freehold.model.start_by import late_reason
from freehold.store.types import Advanced, Firing, LaneScan, Recovered, SetAside, SweepCheck
from freehold.tasks import Registry
from freehold.telemetry import Telemetry, fields, log
from freehold.worker.claimer import log_set_aside
from freehold.worker.config import WorkerSettings
from freehold.worker.ended_calls import EndedCalls
from freehold.worker.flow_folder import log_problems
from freehold.worker.misfits import MisfitCheck, MisfitStore
from freehold.worker.wakeups import SWEEP_SECONDS, Wakeups

BATCH = 200
#: Schedules that one statement fires.
FIRE_BATCH = 100
#: Each worker sweeps at least this often, because the others may be gone; so does an idle worker
#: of a host, which watches the store for all its workers.
SWEEP_SECONDS_LIMIT = 10.0
#: Of all workers together.
_SWEEPS_PER_SECOND = 4
#: So many workers sweep at the very moment a job falls due; those of a larger fleet follow later.
_PROMPT_WORKERS = 8
#: Between two scans over all lanes, or over all leases. Each sweep checks LANES of them.
LANES_SECONDS = 60.0
LANES = 1000
RETENTION_SECONDS = 3600.0
#: Changes by operators are few: one batch with each retention is enough.
AUDIT_BATCH = 10_000
#: Batches of retention in the first sweep, for workers that end soon after.
_FIRST_BATCHES = 25
#: Workers without a heartbeat for this long are deleted with the history.
SILENT_SECONDS = 3600.0
#: The first wait after an error.
_ERROR_SECONDS = 2.0
_APART_SECONDS = 0.05
#: Until the next sweep if other transactions have the rows of flows, as one that adds members.
_BUSY_SECONDS = 0.2
_NOTHING = Advanced()


#: The outcome of an attempt whose worker was lost.
LOST = Outcome(kind=OutcomeKind.LOST_LEASE)


class SweepStore(MisfitStore, Protocol):
    async def recover(self, limit: int, chance: float) -> list[Recovered]: ...

    async def restart_leases(self, limit: int) -> int: ...

    async def make_ready(self, limit: int) -> int: ...

    async def cancel_late(self, limit: int) -> list[Job]: ...

    async def fire_schedules(self, limit: int, chance: float) -> Firing: ...

    async def deliver_signals(self, limit: int) -> int: ...

    async def advance_flows(self) -> Advanced: ...

    async def set_aside_swept(self) -> list[SetAside]: ...

    async def sweep_check(self, tasks: Sequence[str]) -> SweepCheck: ...

    async def admit_limited(self, limit: int) -> int: ...

    async def wake_lanes(self, limit: int) -> int: ...

    async def promote_stalled_lanes(self, after: str, limit: int) -> LaneScan: ...

    async def unpark(self, tasks: Sequence[str], limit: int) -> int: ...

    async def carry_out_bulk_step(self) -> bool: ...

    async def retention_is_due(self, history_days: float) -> bool: ...

    async def apply_retention(self, history_days: float, limit: int) -> int: ...

    async def apply_audit_retention(self, audit_days: float, limit: int) -> int: ...

    async def remove_silent_workers(self, silent_seconds: float) -> int: ...


def log_promoted_lanes(scan: LaneScan, telemetry: Telemetry) -> None:
    log_set_aside(scan.aside, telemetry)
    for lane in scan.freed:
        telemetry.count("lanes_freed")
        log.warning(
            "lane %s was stalled (a process died before it could promote the next job): resumed",
            lane,
        )


class RoomForJobs(Protocol):
    """The executor."""

    def room(self) -> int: ...

    @property
    def is_idle(self) -> bool: ...


class Sweeper:
    """One per worker, and one in a manager, which runs no jobs."""

    def __init__(
        self,
        store: SweepStore,
        telemetry: Telemetry,
        settings: WorkerSettings,
        tasks: Registry,
        executor: RoomForJobs | None,
        wakeups: Wakeups,
        chance: Callable[[], float],
        ended: EndedCalls | None = None,
        *,
        is_hosted: bool = False,
    ) -> None:
        self._store = store
        self._telemetry = telemetry
        self._store_part = telemetry.store_health.part("sweeper")
        self._tasks = tasks.names
        self._wakeups = wakeups
        self._executor = executor
        self._history_days = settings.history_days
        self._audit_days = settings.audit_days
        self._chance = chance
        self._is_hosted = is_hosted
        self._ended = ended
        self._misfits = MisfitCheck(self._tasks, tasks.fits)
        now = asyncio.get_running_loop().time()
        self._retention_at = now + RETENTION_SECONDS * chance()
        self._scan_lanes_at = now + LANES_SECONDS * chance()
        self._check_leases_at = 0.0
        self._is_first = True
        self._scanned_to = ""
        self._woken_at = -_APART_SECONDS

    async def run(self) -> None:
        loop, wakeup = asyncio.get_running_loop(), self._wakeups.sweep
        with self._store_part:
            while True:
                wakeup.clear()
                self._wakeups.swept_at = loop.time()
                try:
                    wait = await self.run_once()
                except StoreError as error:
                    self._telemetry.count("store_errors", label="sweeper")
                    # No wake-up ends this wait: the claimer causes one after each of its errors.
                    await self._store_part.wait(self._store_part.failed(error, _ERROR_SECONDS))
                    continue
                self._store_part.works()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await wakeup.wait()
                        # A minimum distance, however many jobs are scheduled.
                        await asyncio.sleep(self._woken_at + _APART_SECONDS - loop.time())
                        self._woken_at = loop.time()

    async def run_once(self) -> float:
        """One sweep. Returns the seconds until the next. All expired leases are recovered in it.
        A job that no sweep can write must not hold up the others."""
        try:
            return await self._sweep()
        except RowRefused:
            jobs = await self._store.set_aside_swept()
            log_set_aside(jobs, self._telemetry)
            if not jobs:
                raise
            return await self._sweep()

    async def _sweep(self) -> float:
        """The chores in order. Each one decides by itself whether it is due."""
        await self._restart_leases()
        check = await self._store.sweep_check(self._tasks)
        await self._recover(check)
        has_canceled = await self._cancel_late(check)
        made_ready = await self._make_due_ready(check)
        await self._make_others_ready(check)
        await self._deliver_signals(check)
        advanced = await self._advance_flows(check)
        flows_are_left = check.flows and not advanced.stands_still
        has_fired = await self._fire_schedules(check)
        has_changed_jobs = await self._carry_out_bulk(check)
        await self._apply_retention()
        await self._promote_stalled_lanes()
        has_misfits = check.misfits and not self._misfits.is_done
        self._wakeups.has_swept = (
            made_ready < BATCH
            and has_fired
            and has_canceled
            and not (check.parked or has_misfits or check.bulk or check.signals or flows_are_left)
        )
        due = 0.0 in (check.due_seconds, check.schedule_seconds, check.late_seconds)
        if check.expired or due or has_changed_jobs or check.signals:
            return 0.0  # the next sweep finds out what is due next
        if flows_are_left:
            return _BUSY_SECONDS if advanced.is_left else 0.0
        return self._seconds_until_next(check)

    async def _restart_leases(self) -> None:
        """After the store's clock was set back. One batch per sweep, then once a minute."""
        now = asyncio.get_running_loop().time()
        if now < self._check_leases_at:
            return
        restarted = await self._store.restart_leases(BATCH)
        if restarted:
            log.warning("the store's clock was set back: restarted %s", count(restarted, "lease"))
        if restarted < BATCH:
            self._check_leases_at = now + LANES_SECONDS

    async def _recover(self, check: SweepCheck) -> None:
        if not check.expired:
            return
        while recovered := await self._store.recover(BATCH, self._chance()):
            for each in recovered:
                self._telemetry.count("recovered")
                attempt = each.attempt
                log.warning(
                    "job %d of %s: worker %s was lost, now %s",
                    attempt.job_id,
                    attempt.task,
                    attempt.owner,
                    each.decision.state,
                    extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
                )
                if self._ended is not None:
                    self._ended.add(attempt, LOST, each.decision)
            self._wakeups.jobs_ready()

    async def _cancel_late(self, check: SweepCheck) -> bool:
        """One batch. Returns whether all that were too late are canceled. The next jobs of their
        lanes are ready now."""
        if check.late_seconds != 0.0:
            return True
        canceled = await self._store.cancel_late(BATCH)
        for job in canceled:
            self._telemetry.count("late")
            log.info(
                "job %d of %s is canceled: %s",
                job.id,
                job.task,
                late_reason(job),
                extra=fields(job=job.id, task=job.task),
            )
        if canceled:
            self._wakeups.jobs_ready()
        return len(canceled) < BATCH

    async def _make_due_ready(self, check: SweepCheck) -> int:
        """One batch per sweep, however many are due, so that recovery never waits long."""
        made_ready = await self._store.make_ready(BATCH) if check.due_seconds == 0.0 else 0
        if made_ready:
            self._wakeups.jobs_ready()
        return made_ready

    async def _make_others_ready(self, check: SweepCheck) -> None:
        """The first two are safety nets: freeing a limit or resuming a lane makes its jobs ready.
        Parked jobs return no faster than this worker has room: a worker that does not know their
        task could claim them first, and would park them again."""
        made_ready = 0
        if check.limited:
            made_ready += await self._store.admit_limited(BATCH)
        if check.ended_lane_pauses:
            made_ready += await self._store.wake_lanes(BATCH)
        if check.parked and (room := self._room()) > 0:
            made_ready += await self._store.unpark(self._tasks, room)
        if check.misfits and (room := self._room()) > 0:
            made_ready += await self._misfits.run_once(self._store, room)
        if made_ready:
            self._wakeups.jobs_ready()

    async def _deliver_signals(self, check: SweepCheck) -> None:
        if check.signals and await self._store.deliver_signals(BATCH):
            self._wakeups.jobs_ready()

    async def _advance_flows(self, check: SweepCheck) -> Advanced:
        """A safety net: the worker that writes an end folds it. Operators and producers leave it to
        the sweeps, and so does a worker that dies."""
        if not check.flows:
            return _NOTHING
        advanced = await self._store.advance_flows()
        log_problems(advanced)
        if advanced.jobs:
            self._wakeups.jobs_ready()
        return advanced

    async def _fire_schedules(self, check: SweepCheck) -> bool:
        """One batch. Returns whether all that were due are fired."""
        if check.schedule_seconds != 0.0:
            return True
        firing = await self._store.fire_schedules(FIRE_BATCH, self._chance())
        self._telemetry.count("ticks_fired", firing.fired)
        self._telemetry.count("ticks_skipped", firing.skipped)
        self._telemetry.count("ticks_missed", firing.missed)
        for problem in firing.problems:
            log.warning("a schedule could not be fired, and is tried again later: %s", problem)
        if firing.fired:
            self._wakeups.jobs_ready()
        return firing.seen < FIRE_BATCH

    async def _carry_out_bulk(self, check: SweepCheck) -> bool:
        """One step of a bulk operation. Returns whether it was written: if another worker was
        first, that one goes on, and this one waits for its next sweep. A step that fails must not
        hold up the rest of the sweep."""
        if not check.bulk:
            return False
        try:
            has_changed_jobs = await self._store.carry_out_bulk_step()
        except RowRefused as error:
            log.warning("a bulk operation was stopped, because a step is refused: %s", error)
            return False
        except StoreUnavailable as error:
            self._telemetry.count("store_errors", label="sweeper")
            log.warning("a step of a bulk operation failed, and is tried again later: %s", error)
            return False
        if has_changed_jobs:
            self._wakeups.jobs_ready()
        return has_changed_jobs

    def _room(self) -> int:
        return 0 if self._executor is None else self._executor.room()

    async def _apply_retention(self) -> None:
        """One batch per sweep until nothing is left, then again after an hour; more in the first
        sweep, if the last retention of any worker is long ago."""
        now, batches = asyncio.get_running_loop().time(), 1
        if now < self._retention_at:
            if not self._is_first:
                return
            is_due = await self._store.retention_is_due(self._history_days)
            self._is_first = False
            if not is_due:
                return
            self._retention_at, batches = now, _FIRST_BATCHES
        for _ in range(batches):
            if not await self._store.apply_retention(self._history_days, BATCH):
                await self._store.apply_audit_retention(self._audit_days, AUDIT_BATCH)
                await self._store.remove_silent_workers(SILENT_SECONDS)
                self._retention_at = asyncio.get_running_loop().time() + RETENTION_SECONDS
                return

    async def _promote_stalled_lanes(self) -> None:
        """The next LANES lanes, until the scan is complete. See `store/verbs/stalled_lanes.py`."""
        now = asyncio.get_running_loop().time()
        if now < self._scan_lanes_at:
            return
        scan = await self._store.promote_stalled_lanes(self._scanned_to, LANES)
        self._scanned_to = scan.reached
        log_promoted_lanes(scan, self._telemetry)
        if not scan.reached:
            self._scan_lanes_at = now + LANES_SECONDS

    def _seconds_until_next(self, check: SweepCheck) -> float:
        """The more workers sweep, the more rarely each does; jitter keeps them out of step."""
        most = min(max(SWEEP_SECONDS, check.workers / _SWEEPS_PER_SECOND), SWEEP_SECONDS_LIMIT)
        if self._is_hosted and self._executor is not None and self._executor.is_idle:
            most = SWEEP_SECONDS_LIMIT  # its host watches the store
        wait = most * (0.75 + 0.5 * self._chance())
        times = (check.due_seconds, check.schedule_seconds, check.late_seconds)
        coming = [at for at in times if at is not None]
        if not coming:
            return wait
        spread = self._chance() * min(max(0, check.workers - _PROMPT_WORKERS) * 0.01, 1.0)
        return max(0.001, min(wait, min(coming) + spread))
