"""The oracle's rules of keys that a job holds until a worker takes it."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec.structs import replace

from freehold.model.job import Job, NewJob
from freehold.model.meta import decode_meta
from freehold.model.policy import pack
from freehold.model.state import Stage
from tests.oracle_table import Table, seconds


class WaitingKeys:
    """Which job waits with a key, and when the next one of a throttle may become due."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._windows: dict[str, datetime] = {}

    def holder(self, key: str) -> Job | None:
        for job in self._table.live():
            if job.waiting_key == key and job.stage is not Stage.LEASED:
                return job
        return None

    def timed(self, new: NewJob) -> NewJob:
        """A new job of a throttle, due at the end of its window."""
        assert new.waiting is not None
        if new.waiting.throttle_seconds is None:
            return new
        now, key = self._table.now, new.waiting.key
        due = max(now, self._windows.get(key, now))
        self._windows[key] = due + seconds(new.waiting.throttle_seconds)
        return replace(new, run_at=due)

    def replace(self, job: Job, new: NewJob) -> bool:
        """Gives the waiting job the values of this call. Returns whether there are any."""
        assert new.waiting is not None
        names = new.waiting.replace
        if "args" in names:
            packed = pack(new.policy)
            text = msgspec.json.encode(packed).decode() if packed else None
            job = replace(job, args=new.args.decode(), policy_json=text)
        if "meta" in names:
            job = replace(job, meta=decode_meta(new.meta_json))
        if "priority" in names:
            job = replace(job, priority=new.priority)
        if "tags" in names:
            job = replace(job, tags=new.tags)
        self._table.jobs[job.id] = job
        if "run_at" in names:
            self._move(job, new)
        return bool(names)

    def _move(self, job: Job, new: NewJob) -> None:
        if job.stage is not Stage.SCHEDULED and not (
            job.stage is Stage.READY and job.target is None
        ):
            return
        assert new.waiting is not None
        now, limit = self._table.now, new.waiting.at_most_seconds
        due = new.run_at or now + seconds(new.delay_seconds or 0)
        if limit is not None:
            due = min(due, job.created_at + seconds(limit))
        self._table.due[job.id] = due
        stage = Stage.SCHEDULED if due > now else Stage.READY
        self._table.set_stage(job, stage, run_at=due)
