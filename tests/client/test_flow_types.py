"""What a type checker knows of gathers and workflows; mypy checks `assert_type`."""

from __future__ import annotations

from typing import assert_type

from freehold import Context, Freehold
from freehold.errors import NoResult
from freehold.testing import Harness
from freehold.workflow_nodes import Node

app = Freehold("unused.db")


@app.task
def number(text: str) -> int:
    return int(text)


@app.task
async def words(count: int) -> list[str]:
    return ["x"] * count


@app.task
async def gathers(ctx: Context) -> int:
    numbers = await ctx.gather("numbers", [number.prepare(each) for each in "12"])
    assert_type(numbers, list[int])
    both: list[int | list[str]]
    both = await ctx.gather("both", [number.prepare("3"), words.prepare(2)])
    ended = await ctx.gather("ended", [words.prepare(1)], failed="return")
    assert_type(ended, list[list[str] | NoResult])
    return sum(numbers) + len(both) + len(ended)


@app.task
def gathers_in_thread(ctx: Context) -> int:
    found: list[list[str]] = ctx.gather("words", [words.prepare(2), words.prepare(1)])
    assert_type(found[0], list[str])
    return sum(map(len, found))


def test_results_of_a_gather_have_their_types() -> None:
    with Harness(app) as queue:
        jobs = gathers.enqueue(), gathers_in_thread.enqueue()
        queue.run()
        assert [job.result() for job in jobs] == [3 + 2 + 1, 3]


def test_results_of_nodes_have_their_types() -> None:
    with Harness(app) as queue:
        with app.workflow("typed") as flow:
            first = flow.add(number, "2")
            assert_type(first, Node[int])
            second = flow.add(words, first.result)
            assert_type(second.result, list[str])
            assert_type(flow.map(number, "34", after=second), Node[list[int]])
        queue.run()
        assert_type(flow.result(first), int)
        assert flow.result(second) == ["x", "x"]


def test_prepared_calls_of_several_types_are_one_list() -> None:
    with Harness(app) as queue:
        jobs = [number.prepare("1"), words.prepare(1)]
        batch = app.batch(jobs)
        queue.run()
        assert batch.read().counts.succeeded == 2
