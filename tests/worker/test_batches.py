"""Batches with real workers, on virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from freehold import Context, Freehold, Retry
from freehold.errors import BadInput, Refused
from freehold.model.flow import FlowState
from freehold.model.state import State
from freehold.testing import Harness

app = Freehold("unused.db")
ended: list[tuple[str, int]] = []


@app.task(retry=Retry(max_attempts=1))
def resize(number: int) -> int:
    if number < 0:
        raise ValueError(number)
    return number * 2


@app.task
async def report(ctx: Context, kind: str) -> list[int]:
    flow = await ctx.batch.read()
    ended.append((kind, flow.counts.ended))
    failed = await ctx.batch.members(State.FAILED)
    return [job.id for job in failed]


@app.task
def crawl(ctx: Context, depth: int) -> int:
    if depth:
        ctx.batch.add([crawl.prepare(depth - 1)] * 2)
    return depth


@app.task
async def crawl_async(ctx: Context, depth: int) -> int:
    if depth:
        added = await ctx.batch.add([crawl_async.prepare(depth - 1)] * 2)
        assert len(added) == 2
    return depth


@pytest.mark.requirement("N11")
def test_callbacks_follow_their_batch() -> None:
    ended.clear()
    callbacks: dict[str, Any] = {
        f"on_{kind}": report.prepare(kind) for kind in ("success", "failure", "end")
    }
    with Harness(app) as queue:
        good = app.batch((resize.prepare(n) for n in range(5)), name="thumbs", **callbacks)
        queue.run()
        assert good.read().state is FlowState.SUCCEEDED
        assert sorted(ended) == [("end", 5), ("success", 5)]
        ended.clear()
        bad = app.batch([resize.prepare(1), resize.prepare(-1)], **callbacks)
        queue.run()
        assert sorted(ended) == [("end", 2), ("failure", 2)]
        assert [job.report.result for job in good.members() if job.report] == [0, 2, 4, 6, 8]
        (failed,) = bad.members(State.FAILED)
        assert bad.read().counts.failed == 1
        assert failed.state is State.FAILED


@pytest.mark.requirement("N11")
@pytest.mark.parametrize("task", [crawl, crawl_async])
def test_members_add_members(task: object) -> None:
    with Harness(app) as queue:
        with app.open_batch("crawl", on_end=resize.prepare(1)) as batch:
            batch.add([task.prepare(3)])  # type: ignore[attr-defined]
        queue.run()
        assert batch.read().counts.succeeded == 1 + 2 + 4 + 8
        assert batch.read().state is FlowState.SUCCEEDED


def test_a_batch_is_canceled_and_retried() -> None:
    with Harness(app) as queue:
        batch = app.batch([resize.using(delay=60).prepare(1), resize.prepare(-1)])
        queue.run()
        assert batch.cancel("wrong size")
        queue.run()
        assert batch.read().state is FlowState.CANCELED
        assert batch.retry() == 2
        queue.run()
        flow = batch.read()
        assert (flow.state, flow.counts.succeeded, flow.counts.failed) == (FlowState.FAILED, 1, 1)


def test_bad_input_stores_nothing() -> None:
    with Harness(app) as queue:
        with pytest.raises(BadInput, match="unique"):
            app.batch([resize.prepare(1), resize.using(unique_key="k").prepare(1)])
        with pytest.raises(BadInput, match="not a prepared job"):
            app.batch([resize.prepare(1), 7])  # type: ignore[list-item]
        with pytest.raises(BadInput, match="kind"):
            app.batch([resize.prepare(1)], on_end=report.prepare())
        with pytest.raises(BadInput, match="on_end got a JobHandle"):
            app.batch([], on_end=resize.enqueue(1))  # type: ignore[arg-type]
        queue.run()
        assert app._client.store.flows(10) == []
        batch = app.batch([resize.prepare(1)])
        with pytest.raises(Refused, match="sealed"):
            batch.add([resize.prepare(2)])
