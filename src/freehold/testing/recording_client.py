"""A client that records the jobs it enqueues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from freehold.client import Client, JobHandle
from freehold.errors import BadInput
from freehold.model.job import NewJob


class RecordedCall(msgspec.Struct, frozen=True):
    """One job that was enqueued."""

    id: int
    job: NewJob


class RecordingClient(Client):
    """Records new jobs, and none that existed already with the same key.

    A ``connection`` to another database is ignored: in a test the job exists at once, whether or
    not the caller's transaction commits.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.calls: list[RecordedCall] = []

    def enqueue(self, jobs: Sequence[NewJob], connection: Any = None) -> list[JobHandle]:
        return self._recorded(jobs, super().enqueue(jobs, self._own(connection)))

    async def aenqueue(self, jobs: Sequence[NewJob], connection: Any = None) -> list[JobHandle]:
        return self._recorded(jobs, await super().aenqueue(jobs, self._own(connection)))

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
