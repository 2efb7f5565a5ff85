"""Helpers of the client's tests."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from freehold import Freehold, Job, JobHandle, Task
from freehold.model.job import Attempt
from freehold.store.types import ClaimRequest, JobFilter, QueueDemand
from tests.stores import PostgresUnderTest

T = TypeVar("T")


def url_of(postgres: PostgresUnderTest) -> str:
    return postgres._postgres.url


def jobs_of(app: Freehold) -> tuple[Job, ...]:
    """All stored jobs, newest first."""
    return app.operator.jobs(JobFilter(limit=1000)).jobs


def claimed(app: Freehold, queue: str = "default") -> list[Attempt]:
    """Claim all ready jobs of a queue."""
    request = ClaimRequest(owner="w1", lease_seconds=30, demands=(QueueDemand(queue, 1000),))
    return app._client.store.claim(request)


def awaited(app: Freehold, coroutine: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine, and close the connections of its event loop."""

    async def run_and_close() -> T:
        try:
            return await coroutine
        finally:
            await app.aclose()

    return asyncio.run(run_and_close())


def call_of(task: Task[Any, Any, JobHandle], job: Job) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The call that a worker makes for a job."""
    positional, named = task.definition.signature.decode(job.args)
    return tuple(positional), named


def greet(name: str, times: int = 1) -> None:
    """The task of most tests."""


async def agreet(name: str, times: int = 1) -> None:
    """The same, awaited."""
