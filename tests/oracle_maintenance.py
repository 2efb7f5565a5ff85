"""The oracle's maintenance: sweeps, parked jobs, broken rows, and leases whose time is changed."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from freehold.model.history import EventKind
from freehold.model.job import LONGEST_LEASE_SECONDS, Job
from freehold.model.operator_actions import paused_stage
from freehold.model.state import Stage, State
from freehold.store.types import Misfit
from tests.oracle_table import READY, TIMED, Change, Table, seconds

#: Stands for the database's error, which is the reason of a row that was set aside.
REFUSED = "the database refuses this row"


class Maintenance(Table):
    # -- time --------------------------------------------------------------------------------

    def advance(self, by: float) -> None:
        self.now += seconds(by)

    def expire_leases(self, owner: str) -> int:
        expired = 0
        for job in list(self.live()):
            lease = job.lease
            if lease and lease.owner == owner and lease.expires_at > self.now:
                self.set_stage(job, Stage.LEASED, lease=replace(lease, expires_at=self.now))
                expired += 1
        return expired

    def restart_leases(self, limit: int) -> int:
        """Leases that began in the future last for their length from now."""
        longest = seconds(LONGEST_LEASE_SECONDS)
        restarted = 0
        for job in self.live():
            lease = job.lease
            if lease is None or restarted == limit:
                continue
            if lease.heartbeat_at > self.now or lease.expires_at > self.now + longest:
                length = lease.expires_at - lease.heartbeat_at
                ends = self.now + (length if length <= longest else seconds(0))
                renewed = replace(lease, heartbeat_at=self.now, expires_at=ends)
                self.set_stage(job, Stage.LEASED, lease=renewed)
                restarted += 1
        return restarted

    # -- jobs that have not started by their time --------------------------------------------

    def is_late(self, job: Job) -> bool:
        return job.start_by is not None and job.attempt == 0 and job.start_by <= self.now

    def cancel_late(self, limit: int) -> list[int]:
        late = [job for job in self.live() if self.is_late(job)]
        late.sort(key=lambda job: (job.start_by or self.now, job.id))
        for job in late[:limit]:
            canceled = Change(
                state=State.CANCELED,
                event=EventKind.CANCELED,
                stages=None,
                by=None,
                reason=f"it had not started by {job.start_by:%Y-%m-%d %H:%M:%S} UTC (start_by)",
            )
            self.change(job, canceled)
        self.promote(job.target for job in late[:limit])
        return sorted(job.id for job in late[:limit])

    # -- what becomes ready ------------------------------------------------------------------

    def make_ready(self, limit: int) -> int:
        due = [job for job in self.live() if job.stage in TIMED and job.run_at <= self.now]
        due.sort(key=lambda job: (job.run_at, job.id))
        for job in due[:limit]:
            self.set_stage(job, Stage.LANE_HEAD if job.stage is Stage.BACKOFF else Stage.READY)
        return len(due[:limit])

    def next_due_seconds(self) -> float | None:
        times = [job.run_at for job in self.live() if job.stage in TIMED]
        return max(0.0, (min(times) - self.now).total_seconds()) if times else None

    def unpark(self, tasks: Sequence[str], limit: int) -> int:
        parked = [
            job
            for job in self.live()
            if job.stage is Stage.PARKED and job.task in tasks and job.id not in self.parked_until
        ]
        return self._unpark(parked[:limit])

    def misfits(self, tasks: Sequence[str], after: int, limit: int) -> list[Misfit]:
        found = [
            Misfit(job.id, job.task, job.args, self.parked_until[job.id] <= self.now)
            for job in self.live()
            if job.stage is Stage.PARKED and job.task in tasks and job.id in self.parked_until
        ]
        return [each for each in found if each.job_id > after][:limit]

    def unpark_misfits(self, ids: Sequence[int]) -> int:
        jobs = [job for job in self.live() if job.id in ids and job.stage is Stage.PARKED]
        return self._unpark([job for job in jobs if job.id in self.parked_until])

    def _unpark(self, parked: Sequence[Job]) -> int:
        for job in parked:
            self.set_stage(job, Stage.LANE_HEAD if job.target else Stage.READY, reason=None)
            self.add_event(job, EventKind.UNPARKED, State.QUEUED, None, None)
        return len(parked)

    # -- rows that the database refuses ------------------------------------------------------

    def break_row(self, job_id: int, *, is_forbidden: bool) -> None:
        """No claim or sweep can write the job. If it is forbidden, it cannot be paused either."""
        self.broken[job_id] = is_forbidden

    def mend_row(self, job: Job) -> None:
        del self.broken[job.id]
        self.jobs[job.id] = replace(self.jobs[job.id], args="{}")

    def set_aside_ready(self, queue: str) -> list[int]:
        return self._set_aside(
            [job for job in self.live() if job.queue == queue and job.stage in READY]
        )

    def set_aside_swept(self) -> list[int]:
        return self._set_aside([job for job in self.live() if self.is_swept(job)])

    def is_swept(self, job: Job) -> bool:
        """Whether a sweep would write the job."""
        if job.lease is not None:
            return job.lease.expires_at <= self.now
        return (
            self.is_late(job)
            or job.stage is Stage.PARKED
            or (job.stage in TIMED and job.run_at <= self.now)
        )

    def _set_aside(self, tried: Sequence[Job]) -> list[int]:
        refused = [job for job in tried if job.id in self.broken]
        for job in refused:
            self.change(job, self._aside(job))
        self.promote(job.target for job in refused)
        return [job.id for job in refused]

    def _aside(self, job: Job) -> Change:
        """Paused in its place; the history accepts what no constraint of a live job allows."""
        assert job.stage is not None
        is_forbidden = self.broken[job.id]
        stage = paused_stage(job.stage, has_lane=job.target is not None)
        return Change(
            state=State.FAILED if is_forbidden else State.PAUSED,
            event=EventKind.FAILED if is_forbidden else EventKind.PAUSED,
            stages=None if is_forbidden else (stage, stage),
            by=job.lease.owner if job.lease else None,
            reason=REFUSED,
            run_at=self.due[job.id],
            keeps_run_at=True,
            keeps_start_by=False,
        )
