"""ctx.gather: children and step in one write, no slot while they run, typed results."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from freehold import Context, Freehold, Retry
from freehold.errors import JobCanceled, JobFailed
from freehold.model.flow import FlowState
from freehold.model.state import State
from freehold.model.step import StepKind
from freehold.store.types import JobFilter
from freehold.testing import Harness

app = Freehold("unused.db")
runs: list[int] = []


@dataclass
class Page:
    number: int


@app.task(retry=Retry(max_attempts=1))
def render(number: int) -> Page:
    if number < 0:
        raise ValueError(number)
    return Page(number)


@app.task(retry=Retry(max_attempts=3, base_seconds=0))
async def book(ctx: Context, pages: list[int], failed: str = "raise") -> list[str]:
    runs.append(ctx.attempt)
    found = await ctx.gather("pages", [render.prepare(n) for n in pages], failed=failed)  # type: ignore[call-overload]
    return [type(each).__name__ if isinstance(each, Exception) else repr(each) for each in found]


@app.task
def book_in_thread(ctx: Context, pages: list[int]) -> int:
    runs.append(ctx.attempt)
    first = ctx.gather("first", [render.prepare(n) for n in pages])
    second = ctx.gather("second", [render.prepare(each.number + 1) for each in first])
    return sum(each.number for each in second)


@app.task(queue="slow")
async def in_lane(ctx: Context) -> None:
    await ctx.gather("same", [render.using(target="lane").prepare(1)])


@pytest.mark.requirement("N9")
def test_results_have_their_types_and_order() -> None:
    runs.clear()
    with Harness(app) as queue:
        job = book.enqueue([3, 1, 2])
        queue.run()
        assert job.result() == ["Page(number=3)", "Page(number=1)", "Page(number=2)"]
        assert runs == [1, 1]  # a suspension counts no attempt
        (step,) = app._client.store.read_steps(job.id)
        assert step.kind is StepKind.GATHERED
        (flow,) = app._client.store.flows(10)
        assert (flow.state, flow.parent_job, flow.counts.total) == (
            FlowState.SUCCEEDED,
            job.id,
            3,
        )


def test_gathers_of_a_plain_function() -> None:
    runs.clear()
    with Harness(app) as queue:
        job = book_in_thread.enqueue([1, 2])
        queue.run()
        assert job.result() == 5
        assert runs == [1, 1, 1]


def test_an_empty_gather_returns_at_once() -> None:
    with Harness(app) as queue:
        job = book.enqueue([])
        queue.run()
        assert job.result() == []


def test_a_failed_child_is_raised_when_all_have_ended() -> None:
    runs.clear()
    with Harness(app) as queue:
        job = book.enqueue([1, -1, 2])
        queue.run(seconds=60)
        with pytest.raises(JobFailed, match="JobFailed"):
            job.result()
        assert runs == [1, 1, 2, 3]  # the retries find the same children
        assert (
            len([each for each in app.operator.jobs(JobFilter()).jobs if "render" in each.task])
            == 3
        )


def test_failed_children_as_values() -> None:
    with Harness(app) as queue:
        job = book.enqueue([1, -1], "return")
        queue.run()
        assert job.result() == ["Page(number=1)", "JobFailed"]


def test_a_deleted_child_counts_as_canceled() -> None:
    with Harness(app) as queue:
        job = slow_book.enqueue("return")
        queue.run()
        children = [each for each in app.operator.jobs(JobFilter()).jobs if "render" in each.task]
        app.operator.delete(children[0].id, by="ann")
        queue.run(seconds=3600)
        assert job.result() == ["Page", JobCanceled.__name__]


def test_the_cancel_of_a_job_cancels_what_it_gathers() -> None:
    with Harness(app) as queue:
        job = slow_book.enqueue()
        queue.run()
        assert job.read().waits_for is not None
        job.cancel("not needed")
        queue.run()
        children = [each for each in app.operator.jobs(JobFilter()).jobs if "render" in each.task]
        assert [each.state for each in children] == [State.CANCELED] * 2


@app.task
async def slow_book(ctx: Context, failed: str = "raise") -> list[str]:
    calls = [render.using(delay=3600).prepare(n) for n in range(2)]
    found = await ctx.gather("pages", calls, failed=failed)  # type: ignore[call-overload]
    return [type(each).__name__ for each in found]


def test_a_child_in_the_lane_of_its_parent_is_refused() -> None:
    with Harness(app) as queue:
        job = in_lane.using(target="lane", max_attempts=1).enqueue()
        queue.run()
        with pytest.raises(JobFailed, match="wait for each other"):
            job.result()
        assert len(app.operator.jobs(JobFilter()).jobs) == 1
