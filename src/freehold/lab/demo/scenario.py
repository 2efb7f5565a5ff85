"""The demo's story: work comes, workers come, one is killed, its jobs come back, workers go.

It looks at the store as any operator could, a few times a second, and shows what it saw. Only
the kill is its own doing. At the end it counts: see `checking`.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter

from freehold.app import Freehold
from freehold.lab.demo.check import Check, again, check
from freehold.lab.demo.handler_log import read
from freehold.lab.demo.load import QUEUES, prepare
from freehold.lab.demo.snapshot import Missing, Snapshot, SnapshotView, Tone
from freehold.lab.demo.worker_processes import LEASE_SECONDS, WorkerProcesses
from freehold.model.history import EventKind
from freehold.model.job import Job
from freehold.model.scaling import ScaleRule
from freehold.model.simulated_kind import SimulatedKind
from freehold.model.state import FINAL, LEASED, State
from freehold.store.types import JobFilter

#: After this long it counts what there is, whatever is still under way.
DEADLINE_SECONDS = 50.0
#: A person watches: this is the pace of the picture.
_LOOK_SECONDS = 0.25
_SHOWN_IDS = 6


class DemoScenario:
    """One performance."""

    def __init__(
        self,
        app: Freehold,
        manager: str,
        rule: ScaleRule,
        staff: WorkerProcesses,
        stage: SnapshotView,
        kinds: dict[str, SimulatedKind],
        count: int,
    ) -> None:
        self._app = app
        self._store = app.client.awaited
        self._manager = manager
        self._rule = rule
        self._staff = staff
        self._stage = stage
        self._kinds = kinds
        self._count = count
        self._act = "The manager starts its first workers."
        self._ids: list[int] = []
        self._targets: dict[int, str] = {}
        self._open: dict[int, Job | None] = {}
        #: Jobs of the killed worker, and how each was last seen.
        self._missing: dict[int, Missing] = {}
        self.killed: int | None = None
        #: How many workers lived, from the load's coming on, whenever that had changed.
        self.course: list[int] = []

    async def run(self) -> Check:
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                await self._play()
        except TimeoutError:
            self._say(f"not over after {DEADLINE_SECONDS:.0f} s: it is counted all the same", "bad")
        return await self._count_up()

    async def _play(self) -> None:
        least = self._rule.default_count
        while await self._look() < least:
            pass
        await self._enqueue()
        self.course.append(least)
        self._act = "Work has come: the manager starts workers, up to its maximum."
        while self._open:
            await self._look()
            if self.killed is None and 4 * (self._count - len(self._open)) >= self._count:
                await self._kill_someone()
        self._say("every job has ended", "good")
        self._act = "Nothing is left to do: workers that are not needed any more go."
        while len(self._staff.alive) > least:
            await self._look()
        await self._look()

    async def _enqueue(self) -> None:
        jobs = prepare(self._app, self._count)
        handles = await self._app.aenqueue_many(jobs)
        self._ids = [handle.id for handle in handles]
        self._open = dict.fromkeys(self._ids)
        self._targets = {
            handle.id: job.target
            for handle, job in zip(handles, jobs, strict=True)
            if job.target is not None
        }
        self._say(
            f"{len(jobs)} jobs enqueued in {len(QUEUES)} queues; {len(self._targets)} of them in "
            f"{len(set(self._targets.values()))} lanes"
        )

    # -- looking -----------------------------------------------------------------------------

    async def _look(self) -> int:
        """One picture, at its pace. Answers how many workers are at work."""
        operate = self._app.aoperate
        found = await self._store.read(list(self._open))
        # A job that is in the store no more is over too, and will be found lost.
        self._open = {i: found[i] for i in self._open if i in found and found[i].state not in FINAL}
        await self._look_for_missing()
        workers = [w for w in await operate.workers() if w.manager == self._manager]
        alive = self._staff.alive
        if self._ids and [len(alive)] != self.course[-1:]:
            self.course.append(len(alive))
        scene = Snapshot(
            store=self._app.database.shown,
            act=self._act,
            ended=len(self._ids) - len(self._open),
            jobs=self._count,
            alive=len(alive),
            workers=[worker for worker in workers if worker.pid in alive],
            queues=[queue for queue in await operate.queues() if queue.name in QUEUES],
            counts=await operate.counts(),
            missing=list(self._missing.values()),
        )
        self._stage.show(scene)
        await asyncio.sleep(_LOOK_SECONDS)
        return len(scene.workers)

    async def _look_for_missing(self) -> None:
        back = []
        for job_id, before in self._missing.items():
            if before.is_back and job_id not in self._open:
                self._missing[job_id] = await self._seen(before)
                continue
            after = await self._seen(before)
            self._missing[job_id] = after
            if after.is_back and not before.is_back:
                back.append(job_id)
        if back:
            self._say(f"recovered, and queued again: {_listed('job', back)}", "good")
            if all(missing.is_back for missing in self._missing.values()):
                self._act = "All jobs of the killed worker have come back; the others never waited."

    async def _seen(self, missing: Missing) -> Missing:
        """Back is what the store says to have taken from the dead."""
        job = (await self._store.read([missing.id])).get(missing.id)
        if job is None:
            return Missing(missing.id, missing.task, missing.target, "gone", False)
        events = await self._store.events(job.id)
        is_back = any(event.kind is EventKind.LEASE_LOST for event in events)
        now = _state_now(job) if is_back else "leased by the dead worker"
        return Missing(job.id, job.task, job.target, now, is_back)

    # -- the kill ----------------------------------------------------------------------------

    async def _kill_someone(self) -> None:
        """Whoever has most in hand. It is frozen first, so that what it holds is exactly known."""
        workers = await self._app.aoperate.workers()
        pids = {w.owner: w.pid for w in workers if w.manager == self._manager}
        held = Counter(job.lease.owner for job in await self._leased() if job.lease is not None)
        busiest = [owner for owner, _ in held.most_common() if owner in pids]
        if not busiest or len(busiest) < self._rule.default_count:
            return
        owner, pid = busiest[0], pids[busiest[0]]
        self._staff.send(pid, signal.SIGSTOP)
        jobs = [j for j in await self._leased() if j.lease is not None and j.lease.owner == owner]
        if not any(job.state is State.RUNNING for job in jobs):
            self._staff.send(pid, signal.SIGCONT)
            return
        self._staff.send(pid, signal.SIGKILL)
        self.killed = pid
        self._missing = {
            job.id: Missing(job.id, job.task, job.target, "leased by the dead worker", False)
            for job in sorted(jobs, key=lambda job: job.id)
        }
        held_jobs = _listed("job", list(self._missing))
        self._say(f"worker {pid} is killed with -9; it held {held_jobs}", "bad")
        self._act = f"A worker was killed. Its leases run out within {LEASE_SECONDS:g} s."

    async def _leased(self) -> tuple[Job, ...]:
        return (await self._app.aoperate.jobs(JobFilter(states=LEASED, limit=1000))).jobs

    # -- the end -----------------------------------------------------------------------------

    async def _count_up(self) -> Check:
        lines = await asyncio.to_thread(read, self._staff.record)
        jobs = await self._store.read(self._ids)
        asked = dict.fromkeys([*again(lines), *self._missing])
        events = {job_id: await self._store.events(job_id) for job_id in asked}
        return check(self._ids, self._targets, self._kinds, jobs, events, lines)

    def _say(self, text: str, tone: Tone = "plain") -> None:
        self._stage.say(text, tone)


def _state_now(job: Job) -> str:
    owner = f" by {job.lease.owner}" if job.lease is not None else ""
    return f"{job.state}{owner}, attempt {job.attempt}"


def _listed(what: str, ids: list[int]) -> str:
    more = ", …" if ids[_SHOWN_IDS:] else ""
    return (
        f"{len(ids)} {what}{'s'[: len(ids) != 1]} ({', '.join(map(str, ids[:_SHOWN_IDS]))}{more})"
    )
