"""No job hangs, and no neighbour suffers, because of how a handler ended."""

from __future__ import annotations

from typing import Any

import pytest

from freehold import Fail, Snooze, State
from freehold.model.handler_exceptions import RetryLater
from tests.worker import fleet_app
from tests.worker.fleet import Fleet
from tests.worker.workshop import ONCE, Workshop


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Odd:
    """Looks like a dataclass, and is none."""

    __dataclass_fields__ = property(lambda _: 1 / 0)


def snoozes_for_ever() -> None:
    raise Snooze(1e15)


def retries_never() -> None:
    raise RetryLater(1e300)


def cannot_be_told() -> None:
    raise Unprintable


def gives_a_number_as_its_reason() -> None:
    raise Fail(42)  # type: ignore[arg-type]


def returns_odd() -> Any:
    return Odd()


@pytest.mark.requirement("S2.5", "P7")
@pytest.mark.parametrize(
    "handler",
    [snoozes_for_ever, retries_never, cannot_be_told, gives_a_number_as_its_reason, returns_odd],
)
def test_a_strange_end_fails_its_own_job_and_no_other(workshop: Workshop, handler: Any) -> None:
    def healthy() -> str:
        return "well"

    strange = workshop.add(handler, retry=ONCE)
    task = workshop.app.task(name="healthy")(healthy)
    others = [task.enqueue().id for _ in range(5)]
    workshop.run(concurrency=6)
    failed = workshop.job(strange)
    assert failed.state is State.FAILED
    assert failed.reason
    assert all(workshop.job(other).state is State.SUCCEEDED for other in others)


@pytest.mark.requirement("P7", "S3.8")
def test_an_end_that_the_store_refuses_is_found_out_and_the_others_are_spared(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a limit that the model does not know were met: ten thousand years of waiting."""
    monkeypatch.setattr("freehold.model.handler_exceptions.WAIT_LIMIT_SECONDS", float("inf"))

    def healthy() -> str:
        return "well"

    strange = workshop.add(snoozes_for_ever, retry=ONCE)
    task = workshop.app.task(name="healthy")(healthy)
    others = [task.enqueue().id for _ in range(5)]
    if workshop.is_postgres:  # SQLite counts that far
        workshop.run(concurrency=6)
        assert workshop.job(strange).reason == "its outcome could not be stored"
        assert all(workshop.job(other).state is State.SUCCEEDED for other in others)


@pytest.mark.requirement("S0.3")
def test_a_forked_grandchild_answers_for_nobody(fleet: Fleet) -> None:
    fleet.start("--concurrency", "1")
    first = fleet_app.forks.enqueue("the child", 0.0).id
    second = fleet_app.forks.enqueue("the next", 0.6).id
    reports = [fleet.succeeded(job_id).report for job_id in (first, second)]
    assert [report.result for report in reports if report] == ["the child", "the next"]


@pytest.mark.requirement("S2.11")
def test_a_child_that_dies_is_noticed_though_a_grandchild_lives(fleet: Fleet) -> None:
    fleet.start()
    job_id = fleet_app.leaves_a_grandchild.enqueue(600.0).id
    job = fleet.until(job_id, State.FAILED)
    assert "SIGKILL" in (job.reason or "")
