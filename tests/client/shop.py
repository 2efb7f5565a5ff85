"""Short forms that the tests of the client share."""

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
    """Everything that is stored, newest first."""
    return app.operate.jobs(JobFilter(limit=1000)).jobs


def claimed(app: Freehold, queue: str = "default") -> list[Attempt]:
    """What a worker would get now."""
    ask = ClaimRequest(owner="w1", lease_seconds=30, wants=(QueueDemand(queue, 1000),))
    return app.client.store.claim(ask)


def awaited(app: Freehold, coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to the end, and give the loop's connections back."""

    async def whole() -> T:
        try:
            return await coroutine
        finally:
            await app.aclose()

    return asyncio.run(whole())


def call_of(task: Task[Any, Any, JobHandle], job: Job) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The call that a worker makes for a job."""
    positional, named = task.definition.signature.decode(job.args)
    return tuple(positional), named


def greet(name: str, times: int = 1) -> None:
    """The task of most tests."""


async def agreet(name: str, times: int = 1) -> None:
    """The same, awaited."""
