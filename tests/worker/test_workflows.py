"""Workflows with real workers, on virtual time."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from freehold import Context, Freehold, Retry
from freehold.errors import BadInput, JobCanceled
from freehold.model.flow import FlowState
from freehold.model.state import State
from freehold.store.types import JobFilter
from freehold.testing import Harness
from freehold.workflows import Workflow

app = Freehold("unused.db")
ran: list[str] = []
broken: set[str] = set()


@app.task(retry=Retry(max_attempts=1))
def extract(url: str) -> list[str]:
    ran.append("extract")
    if "extract" in broken:
        raise ValueError("no such bucket")
    return [url, url.upper()]


@app.task(retry=Retry(max_attempts=1))
async def clean(rows: list[str], suffix: str = "!") -> int:
    ran.append("clean")
    return len(rows)


@app.task(retry=Retry(max_attempts=1))
def load(number: int) -> int:
    ran.append("load")
    if f"load {number}" in broken:
        raise ValueError(number)
    return number


@app.task(retry=Retry(max_attempts=1))
def report(count: int | None, label: str = "") -> str:
    ran.append("report")
    return f"{label}{count}"


@app.task
async def grow(ctx: Context) -> None:
    """Adds nodes behind itself; a repeated attempt adds nothing twice."""
    for _ in range(2):
        first = await ctx.workflow.add(load, 7, name="added")
    again = await ctx.workflow.add(
        report, ctx.workflow.result_of("added"), label="sum ", name="last", after=["added", "grow"]
    )
    assert again != first
    nodes = await ctx.workflow.nodes()
    assert [node.name for node in nodes] == ["grow", "added", "last"]


def _import(on_failure: str = "cancel", key: str | None = None, count: int = 3) -> Workflow:
    with app.workflow("import", key=key) as flow:
        rows = flow.add(extract, "s3")
        kept = flow.add(clean, rows.result)
        parts = flow.map(load, range(count), after=kept)
        flow.add(report, kept.result, label="n=", after=parts, on_failure=on_failure)  # type: ignore[arg-type]
    return flow


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()
    broken.clear()


@pytest.mark.requirement("N12")
def test_nodes_run_when_their_sources_have_succeeded() -> None:
    with Harness(app) as queue:
        flow = _import()
        assert flow.created
        assert [node.waits for node in flow.nodes()] == [False, True, True, True]
        queue.run()
        assert ran == ["extract", "clean", "load", "load", "load", "report"]
        assert flow.result("report") == "n=2"
        assert flow.read().state is FlowState.SUCCEEDED
        assert flow.read().counts.succeeded == 4
        assert flow.graph().splitlines()[1].split() == [
            *("clean", "succeeded", "job", "5"),
            *("after", "extract"),
        ]
        assert "n1 --> n2" in flow.graph("mermaid")


@pytest.mark.requirement("N12")
def test_what_follows_a_map_of_nothing_waits_for_its_sources() -> None:
    broken.add("extract")
    with Harness(app) as queue:
        with app.workflow("import") as flow:
            rows = flow.add(extract, "s3")
            parts = flow.map(load, [], after=rows)
            flow.add(report, 1, after=flow.map(load, [], after=parts, name="more"))
        queue.run()
        assert ran == ["extract"]
        broken.clear()
        flow.retry()
        queue.run()
        assert ran == ["extract", "extract", "report"]
        assert flow.read().state is FlowState.SUCCEEDED


@pytest.mark.requirement("N12")
def test_a_failed_source_cancels_what_depends_on_it() -> None:
    broken.add("extract")
    with Harness(app) as queue:
        flow = _import()
        queue.run()
        assert ran == ["extract"]
        assert flow.read().state is FlowState.FAILED
        states = [node.state for node in flow.nodes()]
        assert states == [State.FAILED, State.CANCELED, State.CANCELED, State.CANCELED]
        with pytest.raises(JobCanceled, match=r"its source extract \(job \d+\) has failed"):
            flow.result("clean")
        assert not app._client.store.has_live_jobs()


@pytest.mark.requirement("N12")
def test_a_workflow_is_retried_as_a_whole() -> None:
    broken.add("extract")
    with Harness(app) as queue:
        flow = _import()
        queue.run()
        broken.clear()
        assert flow.retry() == 6
        assert flow.read().state is FlowState.OPEN
        assert [node.waits for node in flow.nodes()] == [False, True, True, True]
        queue.run()
        assert flow.result("report") == "n=2"
        assert flow.read().state is FlowState.SUCCEEDED
        assert ran == ["extract", "extract", "clean", "load", "load", "load", "report"]


@pytest.mark.requirement("N12")
@pytest.mark.parametrize("on_failure", ["cancel", "hold", "run"])
def test_a_failed_member_of_a_group(on_failure: str) -> None:
    broken.add("load 1")
    with Harness(app) as queue:
        flow = _import(on_failure)
        queue.run()
        state = flow.nodes()[3].state
        assert state == {"cancel": State.CANCELED, "hold": None, "run": State.SUCCEEDED}[on_failure]
        broken.clear()
        assert flow.retry() == {"cancel": 2, "hold": 1, "run": 1}[on_failure]
        queue.run()
        assert flow.result("report") == "n=2"
        assert flow.read().state is FlowState.SUCCEEDED
        assert ran.count("load") == 4


@pytest.mark.requirement("N12")
def test_a_workflow_is_canceled_as_a_whole() -> None:
    with Harness(app) as queue:
        with app.workflow("slow") as flow:
            first = flow.add(load.using(delay=3600), 1)
            flow.map(load, range(3), after=first)
            flow.add(report, first.result)
        queue.run()
        assert flow.cancel("typo")
        queue.run()
        assert flow.read().state is FlowState.CANCELED
        assert not app._client.store.has_live_jobs()
        assert flow.retry() == 5
        queue.run(seconds=3600)
        assert flow.result("report") == "1"
        assert flow.read().state is FlowState.SUCCEEDED


def test_a_running_node_adds_nodes() -> None:
    with Harness(app) as queue:
        with app.workflow("grows") as flow:
            flow.add(grow)
        queue.run()
        assert flow.result("last") == "sum 7"
        assert flow.read().counts.succeeded == 3


def test_one_live_workflow_of_a_key() -> None:
    with Harness(app) as queue:
        first, second = _import(key="2030-01"), _import(key="2030-01")
        assert (second.id, second.created) == (first.id, False)
        queue.run()
        third = _import(key="2030-01")
        assert third.created
        assert third.id != first.id


def _missing(flow: Workflow) -> None:
    flow.add(load)


def _misfit(flow: Workflow) -> None:
    flow.add(clean, flow.add(extract, "s").result, suffix=3)


def _wrong_result(flow: Workflow) -> None:
    flow.add(clean, flow.add(load, 1).result)


def _nested_result(flow: Workflow) -> None:
    flow.add(clean, [flow.add(extract, "s").result])


def _foreign(flow: Workflow) -> None:
    flow.add(load, 1, after=app.workflow("other").add(load, 2))


def _foreign_result(flow: Workflow) -> None:
    other = app.workflow("other")
    flow.add(load, other.add(load, 1, name="else").result)


def _same_name(flow: Workflow) -> None:
    flow.add(load, 1, name="a")
    flow.add(load, 1, name="a")


def _result_of_map(flow: Workflow) -> None:
    flow.add(load, flow.map(load, [1]).result)


def _too_many(flow: Workflow) -> None:
    for number in range(10_001):
        flow.add(load, number)


def _unique(flow: Workflow) -> None:
    flow.add(load.using(unique_key="k"), 1)


def _never(flow: Workflow) -> None:
    flow.add(load, 1, on_failure="never")  # type: ignore[arg-type]


def _start_by(flow: Workflow) -> None:
    flow.add(load.using(start_by=60), 1)


@pytest.mark.requirement("N12")
@pytest.mark.parametrize(
    ("build", "text"),
    [
        (_missing, "missing a required argument: 'number'"),
        (_misfit, "Expected `str`, got `int`"),
        (_wrong_result, "rows takes list, and the result of 'load' is number"),
        (_nested_result, "pass each as an argument of its own"),
        (_foreign, "no node of this workflow"),
        (_foreign_result, "no node of this workflow"),
        (_same_name, "two nodes are called 'a'"),
        (_result_of_map, "is a map"),
        (_too_many, "at most 10,000 nodes"),
        (_unique, "unique, idempotency or waiting key"),
        (_never, "choose one of cancel, hold, run"),
        (_start_by, "give start_by= as a time"),
        (lambda flow: None, "has no nodes"),
    ],
)
def test_bad_input_stores_nothing(build: Callable[[Workflow], None], text: str) -> None:
    with Harness(app) as queue:

        def store() -> None:
            with app.workflow("x") as flow:
                if text != "has no nodes":
                    flow.add(load, 0, name="good")
                build(flow)

        with pytest.raises(BadInput, match=re.escape(text)):
            store()
        queue.run()
        assert app._client.store.flows(10) == []
        assert app.operator.jobs(JobFilter()).jobs == ()


def test_a_block_that_raises_stores_nothing() -> None:
    def store() -> None:
        with app.workflow("x") as flow:
            flow.add(load, 1)
            raise RuntimeError

    with Harness(app):
        with pytest.raises(RuntimeError):
            store()
        assert app._client.store.flows(10) == []


@app.task
async def start_another(ctx: Context) -> int:
    """In the transaction of its own end."""
    async with (
        ctx.transaction() as connection,
        app.workflow("inner", connection=connection) as flow,
    ):
        flow.map(load, range(3), after=flow.add(load, 1))
    return flow.id


def test_a_workflow_in_the_transaction_of_a_handler() -> None:
    with Harness(app) as queue:
        start_another.enqueue()
        queue.run()
        (flow,) = app._client.store.flows(10)
        assert (flow.state, flow.counts.succeeded) == (FlowState.SUCCEEDED, 2)
