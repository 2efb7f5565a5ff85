"""A client that records the jobs it enqueues, and runs them when a result is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from freehold.client import Client, JobHandle
from freehold.errors import BadInput
from freehold.model.job import JobEnd, NewJob


class RecordedCall(msgspec.Struct, frozen=True):
    """One job that was enqueued."""

    id: int
    job: NewJob


class RecordingClient(Client):
    """Records new jobs, and none that existed already with the same key.

    A ``connection`` to another database is ignored: in a test the job exists at once, whether or
    not the caller's transaction commits.
    """

    def __init__(self, *args: Any, run: Callable[[float | None], object]) -> None:
        """``run`` runs the due jobs, and all that become due within so many seconds."""
        super().__init__(*args)
        self._run = run
        self.calls: list[RecordedCall] = []

    def enqueue(self, jobs: Sequence[NewJob], connection: Any = None) -> list[JobHandle]:
        return self._recorded(jobs, super().enqueue(jobs, self._own(connection)))

    async def aenqueue(self, jobs: Sequence[NewJob], connection: Any = None) -> list[JobHandle]:
        return self._recorded(jobs, await super().aenqueue(jobs, self._own(connection)))

    def store_members(self, jobs: Sequence[NewJob], storing: Any, connection: Any = None) -> Any:
        found, handles = super().store_members(jobs, storing, self._own(connection))
        return found, self._recorded(jobs, handles) if handles else []

    async def astore_members(
        self, jobs: Sequence[NewJob], storing: Any, connection: Any = None
    ) -> Any:
        found, handles = await super().astore_members(jobs, storing, self._own(connection))
        return found, self._recorded(jobs, handles) if handles else []

    def wait(self, job_id: int, seconds: float | None) -> JobEnd | None:
        """Runs the jobs of the harness. The virtual time advances only if the job needs it."""
        for span in (None, seconds):
            ends = self.store.read_ends([job_id])
            if job_id in ends:
                return ends[job_id]
            self._run(span)
        ends = self.store.read_ends([job_id])
        if job_id not in ends:
            raise TimeoutError
        return ends[job_id]

    async def wait_async(self, job_id: int, seconds: float | None) -> JobEnd | None:
        return self.wait(job_id, seconds)

    def _own(self, connection: Any) -> Any:
        """The connection if it is that of ctx.transaction(), else None."""
        if connection is None:
            return None
        try:
            self.database.caller_session(connection)
        except BadInput:
            return None
        return connection

    def _recorded(self, jobs: Sequence[NewJob], results: list[JobHandle]) -> list[JobHandle]:
        self.calls += [
            RecordedCall(result.id, job)
            for job, result in zip(jobs, results, strict=True)
            if result.created
        ]
        return results
