"""ctx.meta: the metadata of the job, in every kind of handler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from freehold.worker.execution.context import Context
from tests.worker import context_app
from tests.worker.local_worker import LocalWorker


@pytest.fixture
def process_local_worker(local_worker: LocalWorker) -> Iterator[LocalWorker]:
    """The app with tasks that child processes can import, on this test's store."""
    context_app.app.url = local_worker.app.url
    yield LocalWorker(context_app.app)
    context_app.app.close()


def _returns_meta(ctx: Context) -> dict[str, str | int | float | bool | None]:
    ctx.meta["n"] = 2  # a copy: the next reader gets what is stored
    return ctx.meta


async def _areturns_meta(ctx: Context) -> dict[str, str | int | float | bool | None]:
    return _returns_meta(ctx)


@pytest.mark.requirement("N6")
@pytest.mark.parametrize("function", [_returns_meta, _areturns_meta], ids=["function", "coroutine"])
def test_a_handler_reads_the_metadata_of_its_job(
    local_worker: LocalWorker, function: Callable[[Context], Any]
) -> None:
    task = local_worker.app.task(function)
    job = task.using(meta={"n": 1, "who": None}).enqueue()
    plain = task.enqueue()
    local_worker.run()
    assert _result(local_worker, job.id) == {"n": 1, "who": None}
    assert _result(local_worker, plain.id) == {}


@pytest.mark.requirement("N6")
def test_a_child_process_reads_the_metadata_of_its_job(process_local_worker: LocalWorker) -> None:
    job = context_app.returns_meta.using(meta={"n": 1}).enqueue()
    process_local_worker.run()
    assert _result(process_local_worker, job.id) == {"n": 1}


def _result(worker: LocalWorker, job_id: int) -> Any:
    report = worker.job(job_id).report
    assert report is not None
    return report.result
