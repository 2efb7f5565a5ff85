"""A handler's context works on virtual time as in a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from freehold import Freehold, Retry
from freehold.testing import Harness
from freehold.worker.execution.context import Context

app = Freehold("sqlite:///never-opened.db")


@app.task(name="follow")
async def follow(number: int) -> None: ...


@app.task(name="awaits", retry=Retry(max_attempts=1))
async def awaits(fails: bool, *, ctx: Context | None = None) -> None:
    assert ctx is not None
    ctx.progress(1, 2, "half")
    ctx.log("a line")
    async with ctx.transaction(result="together") as connection:
        await follow.using(connection=connection).aenqueue(1)
        if fails:
            raise ValueError("roll it back")


@app.task(name="blocks", retry=Retry(max_attempts=1))
def blocks(fails: bool, *, ctx: Context | None = None) -> None:
    assert ctx is not None
    ctx.progress(1, 2, "half")
    ctx.log("a line")
    with ctx.transaction(result="together") as connection:
        follow.using(connection=connection).enqueue(1)
        if fails:
            raise ValueError("roll it back")


@pytest.fixture
def queue() -> Iterator[Harness]:
    with Harness(app) as harness:
        yield harness


@pytest.mark.parametrize("name", ["awaits", "blocks"])
def test_a_fenced_transaction_ends_the_job_with_what_it_enqueued(queue: Harness, name: str) -> None:
    job = app.tasks.get(name).enqueue(False)
    report = queue.run(raise_errors=True)
    assert report.succeeded == 2
    finished = queue.job(job.id).report
    assert finished is not None
    assert finished.result == "together"
    queue.assert_enqueued(follow, 1)


@pytest.mark.parametrize("name", ["awaits", "blocks"])
def test_a_rolled_back_job_does_not_count_as_enqueued(queue: Harness, name: str) -> None:
    app.tasks.get(name).enqueue(True)
    assert queue.run().failed == 1
    queue.assert_not_enqueued(follow)
