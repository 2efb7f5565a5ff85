"""No job hangs, and no other job suffers, because of how a handler ended."""

from __future__ import annotations

from typing import Any

import pytest

from freehold import Fail, Snooze, State
from freehold.model.handler_exceptions import RetryLater
from tests.worker import fleet_app
from tests.worker.fleet import Fleet
from tests.worker.local_worker import ONCE, LocalWorker


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not printable")


class BrokenDataclass:
    """Looks like a dataclass, and is none."""

    __dataclass_fields__ = property(lambda _: 1 / 0)


def snoozes_for_ever() -> None:
    raise Snooze(1e15)


def retries_never() -> None:
    raise RetryLater(1e300)


def raises_unprintable() -> None:
    raise Unprintable


def fails_with_a_number_as_reason() -> None:
    raise Fail(42)  # type: ignore[arg-type]


def returns_broken() -> Any:
    return BrokenDataclass()


@pytest.mark.requirement("S2.5", "P7")
@pytest.mark.parametrize(
    "handler",
    [
        snoozes_for_ever,
        retries_never,
        raises_unprintable,
        fails_with_a_number_as_reason,
        returns_broken,
    ],
)
def test_a_strange_outcome_fails_its_own_job_and_no_other(
    local_worker: LocalWorker, handler: Any
) -> None:
    def healthy() -> str:
        return "well"

    strange = local_worker.add(handler, retry=ONCE)
    task = local_worker.app.task(name="healthy")(healthy)
    others = [task.enqueue().id for _ in range(5)]
    local_worker.run(concurrency=6)
    failed = local_worker.job(strange)
    assert failed.state is State.FAILED
    assert failed.reason
    assert all(local_worker.job(other).state is State.SUCCEEDED for other in others)


@pytest.mark.requirement("P7", "S3.8")
def test_an_outcome_that_the_store_refuses_does_not_block_the_others(
    local_worker: LocalWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a limit that the model does not know: a delay beyond ten thousand years."""
    monkeypatch.setattr("freehold.model.handler_exceptions.WAIT_LIMIT_SECONDS", float("inf"))

    def healthy() -> str:
        return "well"

    strange = local_worker.add(snoozes_for_ever, retry=ONCE)
    task = local_worker.app.task(name="healthy")(healthy)
    others = [task.enqueue().id for _ in range(5)]
    if local_worker.is_postgres:  # SQLite can store such a time
        local_worker.run(concurrency=6)
        assert local_worker.job(strange).reason == "its outcome could not be stored"
        assert all(local_worker.job(other).state is State.SUCCEEDED for other in others)


@pytest.mark.requirement("S0.3")
@pytest.mark.either_store
def test_a_forked_grandchild_does_not_report_for_another_job(fleet: Fleet) -> None:
    fleet.start("--concurrency", "1")
    first = fleet_app.forks.enqueue("the child", 0.0).id
    second = fleet_app.forks.enqueue("the next", 0.6).id
    reports = [fleet.succeeded(job_id).report for job_id in (first, second)]
    assert [report.result for report in reports if report] == ["the child", "the next"]


@pytest.mark.requirement("S2.11")
@pytest.mark.either_store
def test_a_child_that_dies_is_noticed_though_a_grandchild_lives(fleet: Fleet) -> None:
    fleet.start()
    job_id = fleet_app.leaves_a_grandchild.enqueue(600.0).id
    job = fleet.until(job_id, State.FAILED)
    assert "SIGKILL" in (job.reason or "")
