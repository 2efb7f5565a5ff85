"""The course of the demo: jobs are enqueued, the manager starts workers, one worker is killed, its
jobs are recovered, and the manager stops workers.

The demo reads the store a few times a second, as an operator could, and shows it. It acts itself
only to enqueue and to kill. At the end it checks the result: see `check`.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter

from freehold.app import Freehold
from freehold.lab.demo.check import Check, check, started_again
from freehold.lab.demo.handler_log import read
from freehold.lab.demo.load import QUEUES, prepare
from freehold.lab.demo.snapshot import OrphanedJob, Snapshot, SnapshotView, Tone
from freehold.lab.demo.worker_processes import LEASE_SECONDS, WorkerProcesses
from freehold.model.history import EventKind
from freehold.model.job import Job
from freehold.model.plural import count
from freehold.model.scaling import ScaleRule
from freehold.model.simulated_kind import SimulatedKind
from freehold.model.state import FINAL, LEASED, State
from freehold.store.types import JobFilter

#: After this long the result is checked even if jobs are still running.
DEADLINE_SECONDS = 50.0
#: How often the display changes, for a person to follow.
_REFRESH_SECONDS = 0.25
_MAX_IDS = 6


class DemoScenario:
    """One run of the demo."""

    def __init__(
        self,
        app: Freehold,
        manager: str,
        rule: ScaleRule,
        processes: WorkerProcesses,
        view: SnapshotView,
        kinds: dict[str, SimulatedKind],
        job_count: int,
    ) -> None:
        self._app = app
        self._store = app._client.awaited
        self._manager = manager
        self._rule = rule
        self._processes = processes
        self._view = view
        self._kinds = kinds
        self._job_count = job_count
        self._headline = "The manager starts its first workers."
        self._ids: list[int] = []
        self._targets: dict[int, str] = {}
        self._open: dict[int, Job | None] = {}
        #: Jobs of the killed worker, with their last known status.
        self._orphans: dict[int, OrphanedJob] = {}
        self.killed: int | None = None
        #: The number of worker processes since the enqueue, each time that it changed.
        self.worker_counts: list[int] = []

    async def run(self) -> Check:
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                await self._run_load()
        except TimeoutError:
            self._log(f"not finished after {DEADLINE_SECONDS:.0f} s; checking the result", "bad")
        return await self._check()

    async def _run_load(self) -> None:
        min_workers = self._rule.default_count
        while await self._refresh() < min_workers:
            pass
        await self._enqueue()
        self.worker_counts.append(min_workers)
        self._headline = "Jobs are waiting: the manager starts workers, up to its maximum."
        while self._open:
            await self._refresh()
            if self.killed is None and 4 * (self._job_count - len(self._open)) >= self._job_count:
                await self._kill_busiest_worker()
        self._log("all jobs have ended", "good")
        self._headline = "No jobs are left: the manager stops the workers that it does not need."
        while len(self._processes.alive) > min_workers:
            await self._refresh()
        await self._refresh()

    async def _enqueue(self) -> None:
        jobs = prepare(self._app, self._job_count)
        handles = await self._app.aenqueue_many(jobs)
        self._ids = [handle.id for handle in handles]
        self._open = dict.fromkeys(self._ids)
        self._targets = {
            handle.id: job.target
            for handle, job in zip(handles, jobs, strict=True)
            if job.target is not None
        }
        self._log(
            f"{count(len(jobs), 'job')} enqueued in {count(len(QUEUES), 'queue')}; "
            f"{len(self._targets)} of them in {count(len(set(self._targets.values())), 'lane')}"
        )

    # -- the display -------------------------------------------------------------------------

    async def _refresh(self) -> int:
        """Shows a snapshot and waits. Returns the number of workers with a heartbeat."""
        operator = self._app.aoperator
        found = await self._store.read(list(self._open))
        # A job that is missing in the store counts as ended here; the check reports it as lost.
        self._open = {i: found[i] for i in self._open if i in found and found[i].state not in FINAL}
        await self._refresh_orphans()
        workers = [w for w in await operator.workers() if w.manager == self._manager]
        alive = self._processes.alive
        if self._ids and [len(alive)] != self.worker_counts[-1:]:
            self.worker_counts.append(len(alive))
        snapshot = Snapshot(
            store=self._app._database.shown,
            headline=self._headline,
            ended=len(self._ids) - len(self._open),
            jobs=self._job_count,
            alive=len(alive),
            workers=[worker for worker in workers if worker.pid in alive],
            queues=[queue for queue in await operator.queues() if queue.name in QUEUES],
            counts=await operator.counts(),
            orphans=list(self._orphans.values()),
        )
        self._view.show(snapshot)
        await asyncio.sleep(_REFRESH_SECONDS)
        return len(snapshot.workers)

    async def _refresh_orphans(self) -> None:
        recovered = []
        for job_id, before in self._orphans.items():
            if before.is_recovered and job_id not in self._open:
                self._orphans[job_id] = await self._refreshed(before)
                continue
            after = await self._refreshed(before)
            self._orphans[job_id] = after
            if after.is_recovered and not before.is_recovered:
                recovered.append(job_id)
        if recovered:
            self._log(f"recovered and queued again: {_listed(recovered)}", "good")
            if all(orphan.is_recovered for orphan in self._orphans.values()):
                self._headline = "All jobs of the killed worker are recovered; no other job waited."

    async def _refreshed(self, orphan: OrphanedJob) -> OrphanedJob:
        """A job is recovered when its history has the event of a lost lease."""
        job = (await self._store.read([orphan.id])).get(orphan.id)
        if job is None:
            return OrphanedJob(orphan.id, orphan.task, orphan.target, "not in the store", False)
        events = await self._store.events(job.id)
        is_recovered = any(event.kind is EventKind.LEASE_LOST for event in events)
        status = _status(job) if is_recovered else "leased by the killed worker"
        return OrphanedJob(job.id, job.task, job.target, status, is_recovered)

    # -- the kill ----------------------------------------------------------------------------

    async def _kill_busiest_worker(self) -> None:
        """Freezes the worker first, so that the leases that it holds are known exactly."""
        workers = await self._app.aoperator.workers()
        pids = {w.owner: w.pid for w in workers if w.manager == self._manager}
        leased_by = Counter(
            job.lease.owner for job in await self._leased() if job.lease is not None
        )
        busiest = [owner for owner, _ in leased_by.most_common() if owner in pids]
        if not busiest or len(busiest) < self._rule.default_count:
            return
        owner, pid = busiest[0], pids[busiest[0]]
        self._processes.send(pid, signal.SIGSTOP)
        jobs = [j for j in await self._leased() if j.lease is not None and j.lease.owner == owner]
        if not any(job.state is State.RUNNING for job in jobs):
            self._processes.send(pid, signal.SIGCONT)
            return
        self._processes.send(pid, signal.SIGKILL)
        self.killed = pid
        self._orphans = {
            job.id: OrphanedJob(job.id, job.task, job.target, "leased by the killed worker", False)
            for job in sorted(jobs, key=lambda job: job.id)
        }
        held_jobs = _listed(list(self._orphans))
        self._log(f"killed worker {pid} with SIGKILL; it held {held_jobs}", "bad")
        self._headline = f"A worker was killed. Its leases expire within {LEASE_SECONDS:g} s."

    async def _leased(self) -> tuple[Job, ...]:
        return (await self._app.aoperator.jobs(JobFilter(states=LEASED, limit=1000))).jobs

    # -- the end -----------------------------------------------------------------------------

    async def _check(self) -> Check:
        records = await asyncio.to_thread(read, self._processes.handler_log)
        jobs = await self._store.read(self._ids)
        to_explain = dict.fromkeys([*started_again(records), *self._orphans])
        events = {job_id: await self._store.events(job_id) for job_id in to_explain}
        return check(self._ids, self._targets, self._kinds, jobs, events, records)

    def _log(self, text: str, tone: Tone = "plain") -> None:
        self._view.log(text, tone)


def _status(job: Job) -> str:
    owner = f" by {job.lease.owner}" if job.lease is not None else ""
    return f"{job.state}{owner}, attempt {job.attempt}"


def _listed(ids: list[int]) -> str:
    more = ", …" if ids[_MAX_IDS:] else ""
    return f"{count(len(ids), 'job')} ({', '.join(map(str, ids[:_MAX_IDS]))}{more})"
