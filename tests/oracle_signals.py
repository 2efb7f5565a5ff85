"""The oracle's rules of steps and signals."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec.structs import replace

from freehold.model.state import Stage
from freehold.model.step import StepKind
from freehold.model.suspension import signal, signal_of
from freehold.store.types import AwaitedSignal, LeaseKey
from tests.oracle_table import TIMED, Table, seconds, unpacked


class StoredStep(msgspec.Struct, frozen=True):
    token: int
    at: datetime
    kind: StepKind = StepKind.RESULT
    until: datetime | None = None
    value: str | None = None


class SentSignal(msgspec.Struct, frozen=True):
    value: str
    expires_at: datetime
    delivered: bool = False


class Signals:
    """Which signals were sent, and the steps of jobs, of which some wait for a signal."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.steps: dict[int, dict[str, StoredStep]] = {}
        self._sent: dict[str, SentSignal] = {}

    def put_step(self, lease: LeaseKey, name: str) -> None:
        """A step that exists stays as it is."""
        step = StoredStep(lease.token, self._table.now, value="1")
        self.steps.setdefault(lease.job_id, {}).setdefault(name, step)
        self._mark(lease.job_id)

    def wait(self, lease: LeaseKey, name: str, wait_seconds: float) -> AwaitedSignal:
        """The first wait decides its end; one that was over, or got its value, stays so."""
        now, known = self._table.now, self.steps.get(lease.job_id, {}).get(name)
        until = now + seconds(wait_seconds) if known is None or known.until is None else known.until
        if known is None or known.kind is StepKind.WAIT:
            sent = self._sent.get(name) if self._is_sent(name) else None
            ended = until <= now
            kind = StepKind.SIGNAL if sent else StepKind.TIMEOUT if ended else StepKind.WAIT
            at = now if known is None else known.at
            known = StoredStep(lease.token, at, kind, until, sent.value if sent else None)
            self.steps.setdefault(lease.job_id, {})[name] = known
        self._mark(lease.job_id)
        return AwaitedSignal(known.kind, known.value, (until - now).total_seconds())

    def _mark(self, job_id: int) -> None:
        job = self._table.jobs[job_id]
        marked = {**unpacked(job), "steps": True}
        self._table.jobs[job_id] = replace(job, policy_json=msgspec.json.encode(marked).decode())

    def send(self, name: str, value: bytes, keep_seconds: float) -> bool:
        if self._is_sent(name):
            return False
        expires_at = self._table.now + seconds(keep_seconds)
        self._sent[name] = SentSignal(value.decode(), expires_at)
        return True

    def _is_sent(self, name: str) -> bool:
        return name in self._sent and self._sent[name].expires_at > self._table.now

    def is_there_for(self, waits_for: str | None) -> bool:
        """Whether a job that is about to be suspended need not wait."""
        name = signal_of(waits_for or "")
        return name is not None and self._is_sent(name)

    def deliver(self) -> int:
        waiting = [
            job
            for name, sent in self._sent.items()
            if not sent.delivered
            for job in self._table.live()
            if job.waits_for == signal(name) and job.stage in TIMED
        ]
        for job in waiting:
            self._table.due[job.id] = self._table.now
            stage = Stage.LANE_HEAD if job.stage is Stage.BACKOFF else Stage.READY
            self._table.set_stage(job, stage, run_at=self._table.now)
        self._sent = {name: replace(each, delivered=True) for name, each in self._sent.items()}
        return len(waiting)

    @property
    def times(self) -> list[datetime]:
        """When signals and waits end."""
        waits = [step for steps in self.steps.values() for step in steps.values()]
        ends = [step.until for step in waits if step.kind is StepKind.WAIT and step.until]
        return ends + [sent.expires_at for sent in self._sent.values()]
