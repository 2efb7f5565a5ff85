"""One chaos run: load with faults, then without until all jobs have ended, then a check."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from freehold.app import Freehold
from freehold.errors import StoreError
from freehold.lab.checker.record import Record, read_logs
from freehold.model.limit import Limit
from freehold.model.state import State
from freehold.store.types import JobCounts, JobFilter
from tests.chaos.cluster_faults import ClusterFaults
from tests.chaos.cluster_target import ClusterTarget
from tests.chaos.database import UNAVAILABLE, PostgresTarget, SqliteTarget, Target
from tests.chaos.faults import Faults
from tests.chaos.ghosts import Ghosts
from tests.chaos.judge import forgive_losses, gather_evidence, judge
from tests.chaos.judge_flows import nothing_is_left
from tests.chaos.numbers import lost_jobs, numbers_given_twice
from tests.chaos.operators import Operators
from tests.chaos.plan import LIMITED_KEY, LIMITED_TO, Plan
from tests.chaos.processes import ChaosProcess, Processes
from tests.chaos.progress import GHOSTS_REJECTED, progress
from tests.chaos.recorder import Recorder
from tests.chaos.report import Report, violation_counts

_CHECK_SECONDS = 0.1
_TIDY_SECONDS = 0.5
_PROGRESS_SECONDS = 0.3
_DRAIN_SECONDS = 30.0


class World:
    """One run, from the start of the processes to the report."""

    def __init__(self, plan: Plan, log: Callable[[str], None]) -> None:
        self._plan = plan
        self._log = log
        plan.record_folder.mkdir(parents=True)
        self._recorder = Recorder(plan.record_folder, "world")
        self._target = self._new_target()
        self._processes = Processes(plan, self._target.url_for)
        self._faults = self._new_faults()
        self._exits: list[tuple[str, int | None]] = []

    def _new_target(self) -> Target:
        if self._plan.store == "sqlite":
            return SqliteTarget(self._plan.folder)
        if self._plan.replication is not None:
            synchronous = self._plan.replication == "synchronous"
            return ClusterTarget(self._plan.folder, synchronous=synchronous)
        pooled = self._plan.pooled
        return PostgresTarget(lambda link, trap: self._faults.on_trap(link, trap), pooled=pooled)

    def _new_faults(self) -> Faults:
        if isinstance(self._target, ClusterTarget):
            cluster = self._target.cluster
            return ClusterFaults(self._plan, self._processes, self._recorder, cluster)
        return Faults(self._plan, self._processes, self._recorder)

    async def run(self) -> Report:
        """SIGTERM cancels the run, which then leaves no process, server or file system behind."""
        me = asyncio.current_task()
        assert me is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)
        try:
            await self._target.start()
            return await self._run_on_target()
        finally:
            self._processes.destroy()
            await self._target.close()
            asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)

    async def _run_on_target(self) -> Report:
        app = Freehold(self._target.url)  # which is known once the target has started
        try:
            await asyncio.to_thread(app.migrate)
            await app._client.awaited.set_key_limit(LIMITED_KEY, Limit(max_leases=LIMITED_TO))
            ghosts = Ghosts(app._client.awaited)
            seconds = await self._run(app, ghosts)
            self._log("judging")
            await app.aclose()
            return await asyncio.to_thread(self._judge, ghosts, seconds)
        finally:
            await app.aclose()

    async def _run(self, app: Freehold, ghosts: Ghosts) -> float:
        """Returns the seconds from the last fault until all jobs had ended."""
        self._processes.start_others()
        self._processes.refill()
        watching = asyncio.create_task(self._watch(app))
        await self._until_work_is_done(app)
        self._faults.begin(self._target, ghosts)
        await self._until_enough_has_happened(ghosts)
        await self._faults.stop()
        self._heal()
        began = time.monotonic()
        await self._until_all_has_ended(app)
        seconds = time.monotonic() - began
        watching.cancel()
        await self._drain()
        return seconds

    async def _until_work_is_done(self, app: Freehold) -> None:
        """The first processes start slowly, because the fork server has to load all modules."""
        done = frozenset({State.SUCCEEDED})
        while True:
            if (await app._client.awaited.page(JobFilter(states=done, limit=1))).jobs:
                return
            await asyncio.sleep(_CHECK_SECONDS)

    async def _until_enough_has_happened(self, ghosts: Ghosts) -> None:
        began = time.monotonic()
        await asyncio.sleep(self._plan.seconds)
        while missing := Counter(self._plan.at_least) - await self._progress(ghosts):
            if time.monotonic() >= began + self._plan.max_seconds:
                break
            self._log(f"faults continue; still missing: {dict(missing)}")
            await asyncio.sleep(_PROGRESS_SECONDS)
        self._minutes = (time.monotonic() - began) / 60

    async def _progress(self, ghosts: Ghosts) -> Counter[str]:
        found = self._faults.counts + Counter({GHOSTS_REJECTED: ghosts.rejected.total()})
        with suppress(*UNAVAILABLE):
            events = await asyncio.to_thread(self._target.events)
            found += progress(events, read_logs(self._plan.record_folder.iterdir()))
        return found

    def _heal(self) -> None:
        self._log("no more faults: waiting for everything to end")
        self._plan.healed.touch()
        self._recorder.record("healed")

    # -- while it runs -----------------------------------------------------------------------

    async def _watch(self, app: Freehold) -> None:
        """Replaces workers that have ended, and logs the state once a second."""
        began = logged_at = time.monotonic()
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            for worker in self._processes.refill():
                self._ended(worker)
            if time.monotonic() - logged_at >= 1.0:
                logged_at = time.monotonic()
                self._log(f"{logged_at - began:6.0f} s  {await self._state(app)}")

    def _ended(self, worker: ChaosProcess) -> None:
        """Records unexpected exits. A drained worker exits with 0, or by SIGTERM itself if the
        signal came before its handler was installed."""
        drained = worker.is_draining and worker.code in (0, -signal.SIGTERM)
        if worker.code != -signal.SIGKILL and not drained:
            self._recorder.record("exited", actor=worker.name, code=worker.code)

    async def _state(self, app: Freehold) -> str:
        faults = "  ".join(f"{kind} {count}" for kind, count in sorted(self._faults.counts.items()))
        try:
            store = app._client.awaited
            newest = (await store.page(JobFilter(limit=1))).jobs
            counts = await store.counts()
        except StoreError as error:
            return f"{type(error).__name__}  {faults}"
        live = counts.ready + counts.waiting + counts.following + counts.leased
        last = newest[0].id if newest else 0
        return f"last id {last:,}  ready {counts.ready}  live {live}  {faults}"

    # -- afterwards --------------------------------------------------------------------------

    async def _until_all_has_ended(self, app: Freehold) -> None:
        store = app._client.awaited
        recorder = Recorder(self._plan.record_folder, "tidy")
        operators = Operators(app.aoperator, store, recorder)
        deadline = time.monotonic() + self._plan.end_seconds
        while time.monotonic() < deadline:
            await asyncio.sleep(_TIDY_SECONDS)
            counts, load = await store.counts(), await app.aoperator.flow_load()
            if counts.paused or counts.pending or counts.failed or load.open:
                await operators.tidy_up()
            producing = any(other.is_alive for other in self._processes.others)
            busy = _has_live_jobs(counts) or load.open or load.due or load.ends
            if not producing and not busy:
                return

    async def _drain(self) -> None:
        for worker in self._processes.workers:
            worker.is_draining = True
            worker.send(signal.SIGTERM)
        for worker in self._processes.workers:
            await asyncio.to_thread(worker.end, _DRAIN_SECONDS)
            self._ended(worker)

    def _judge(self, ghosts: Ghosts, seconds: float) -> Report:
        app = Freehold(self._target.url)
        records = read_logs(self._plan.record_folder.iterdir())
        evidence = gather_evidence(app, self._target.events(), records)
        judgement = judge(evidence)
        judgement.violations += nothing_is_left(app.operator.flow_load())
        app.close()
        if self._plan.replication == "asynchronous":
            forgive_losses(judgement)
            self._faults.counts["acknowledged jobs lost"] = lost_jobs(records, evidence.jobs)
        texts = [str(violation) for violation in judgement.violations]
        texts += numbers_given_twice(records)
        texts += [f"I2: a ghost's write was accepted: {text}" for text in ghosts.accepted]
        return Report(
            store=self._plan.store,
            seed=self._plan.seed,
            minutes=round(self._minutes, 2),
            jobs=judgement.jobs,
            acknowledged=judgement.acknowledged,
            attempts=judgement.attempts,
            states=judgement.states,
            faults=dict(sorted((self._faults.counts + _starved(records)).items())),
            second_runs=judgement.second_runs,
            responses=judgement.responses,
            flows=judgement.flows,
            stale_rejected_by_workers=_counted(records, "stale_writes"),
            lanes_freed=_counted(records, "lanes_freed"),
            stale_rejected_of_ghosts=dict(ghosts.rejected),
            worst_recovery_seconds=round(judgement.worst_recovery_seconds, 3),
            worst_disturbed_recovery_seconds=round(judgement.worst_disturbed_recovery_seconds, 3),
            worst_standstill_seconds=round(judgement.worst_standstill_seconds, 3),
            drained_after_seconds=round(seconds, 3),
            violation_counts=violation_counts(judgement, len(ghosts.accepted)),
            violations=texts,
            new_primary_seconds=self._faults.new_primary_seconds,
            first_job_seconds=judgement.first_job_seconds,
        )


def _counted(records: list[Record], name: str) -> int:
    """The sum of the last value of each worker."""
    last = {
        record.actor: record.info[name]
        for record in records
        if record.kind == "counted" and name in record.info
    }
    return sum(last.values())


def _starved(records: list[Record]) -> Counter[str]:
    """Unplanned: see `starvation`, which cannot distinguish these from a freeze."""
    faults = [record for record in records if record.kind == "fault"]
    freezes = [record for record in faults if record.info["kind"] == "freeze"]
    found = [
        record
        for record in faults
        if record.info["kind"] == "starved"
        and not any(
            each.actor == record.actor and each.at <= record.info["until"] for each in freezes
        )
    ]
    return Counter({"starved by the machine": len(found)})


def _has_live_jobs(counts: JobCounts) -> bool:
    return any(getattr(counts, name) for name in counts.__struct_fields__)
