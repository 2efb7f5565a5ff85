"""A client that remembers what was enqueued, as it was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from freehold.client import Client
from freehold.errors import BadInput
from freehold.model.job import Enqueued, NewJob


class RecordedCall(msgspec.Struct, frozen=True):
    """One job that was enqueued."""

    id: int
    job: NewJob


class RecordingClient(Client):
    """Jobs that were there already (by a key) are no new calls.

    A ``connection`` to another database is accepted and left aside: in a test the job exists
    at once, whatever becomes of the caller's transaction.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.calls: list[RecordedCall] = []

    def enqueue(self, jobs: Sequence[NewJob], connection: Any = None) -> list[Enqueued]:
        return self._noted(jobs, super().enqueue(jobs, self._ours(connection)))

    async def aenqueue(self, jobs: Sequence[NewJob], connection: Any = None) -> list[Enqueued]:
        return self._noted(jobs, await super().aenqueue(jobs, self._ours(connection)))

    def _ours(self, connection: Any) -> Any:
        """The connection, if it is that of ctx.transaction()."""
        if connection is None:
            return None
        try:
            self.database.caller_session(connection)
        except BadInput:
            return None
        return connection

    def _noted(self, jobs: Sequence[NewJob], answers: list[Enqueued]) -> list[Enqueued]:
        self.calls += [
            RecordedCall(answer.id, job)
            for job, answer in zip(jobs, answers, strict=True)
            if answer.created
        ]
        return answers
