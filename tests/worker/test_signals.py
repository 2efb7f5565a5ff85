"""ctx.wait_for_signal and app.send_signal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, assert_type

import psycopg
import pytest

from freehold import Context, Freehold, Secret
from freehold.errors import BadInput
from freehold.testing import Harness
from tests.worker.local_worker import ONCE, LocalWorker, kinds


@dataclass(frozen=True)
class Parcel:
    code: str


@kinds
@pytest.mark.requirement("N9", "N10")
def test_a_handler_waits_for_a_signal_without_a_slot(local_worker: LocalWorker, kind: str) -> None:
    runs: list[int] = []
    app = local_worker.app

    async def coroutine(ctx: Context) -> str:
        runs.append(ctx.attempt)
        parcel = await ctx.wait_for_signal("shipped:7", Parcel, timeout=timedelta(days=14))
        assert_type(parcel, Parcel)  # mypy checks it
        assert isinstance(parcel, Parcel)
        return parcel.code

    def plain(ctx: Context) -> str:
        runs.append(ctx.attempt)
        parcel: Parcel
        parcel = ctx.wait_for_signal("shipped:7", Parcel, timeout=timedelta(days=14))
        assert isinstance(parcel, Parcel)
        return parcel.code

    job_id = local_worker.add(coroutine if kind == "coroutine" else plain, retry=ONCE)
    local_worker.run()
    job = local_worker.job(job_id)
    assert (job.waits_for, job.lease, job.attempt) == ("signal/shipped:7", None, 0)
    assert "waits for the signal: shipped:7" in app.operator.explain(job_id)[0].text
    assert app.send_signal("shipped:7", Parcel("X1"))
    assert not app.send_signal("shipped:7", Parcel("X2"))
    local_worker.run()
    report = local_worker.job(job_id).report
    assert report is not None
    assert (report.result, report.attempts, runs) == ("X1", 1, [1, 1])


async def _otp(ctx: Context) -> None:
    assert await ctx.wait_for_signal("otp", Annotated[str, Secret]) == "hunter2"


async def _login(ctx: Context, password: Annotated[str, Secret]) -> None:
    assert await ctx.wait_for_signal("otp", str) == "hunter2"


@pytest.mark.parametrize("sent_before", [True, False])
@pytest.mark.parametrize(("handler", "args"), [(_otp, {}), (_login, {"password": "x"})])
@pytest.mark.requirement("N10")
def test_a_secret_signal_is_shown_nowhere(
    local_worker: LocalWorker, handler: Any, args: dict[str, str], sent_before: bool
) -> None:
    """Secret by its type, or because an argument of the job is secret."""
    app = local_worker.app
    job_id = app.task(name="login", retry=ONCE)(handler).enqueue(**args).id
    if not sent_before:
        local_worker.run()
    app.send_signal("otp", "hunter2")
    local_worker.run()
    detail = app.operator.show(job_id)
    assert detail.job.state == "succeeded"
    (step,) = detail.steps
    assert (step.kind, step.hidden, step.value) == ("signal", True, '"[secret]"')


@pytest.mark.requirement("N10")
def test_a_signal_is_sent_if_the_callers_transaction_commits(
    postgres_local_worker: LocalWorker,
) -> None:
    app = postgres_local_worker.app

    def plain(ctx: Context) -> int:
        value: int = ctx.wait_for_signal("paid", int)
        return value

    job_id = postgres_local_worker.add(plain)
    postgres_local_worker.run()
    with psycopg.connect(app.url) as connection:
        app.send_signal("paid", 1, connection=connection)
        connection.rollback()
        app.send_signal("paid", 2, connection=connection)
    sql = "select {s}send_signal('paid', '3'), {s}send_signal('other', '[4]')"
    assert postgres_local_worker.sql(sql) == [(False, True)]
    postgres_local_worker.run()
    report = postgres_local_worker.job(job_id).report
    assert report is not None
    assert report.result == 2


@pytest.mark.requirement("N9")
def test_a_wait_raises_after_its_timeout(app: Freehold) -> None:
    @app.task(name="waits", retry=ONCE)
    async def waits(ctx: Context) -> str:
        try:
            await ctx.wait_for_signal("never", timeout=3600)
        except TimeoutError as error:
            return str(error)
        return "not reached"

    with Harness(app) as queue:
        job = waits.enqueue()
        queue.run(seconds=3599)
        assert app.operator.show(job.id).job.state == "queued"
        queue.run(seconds=2)
        assert "was not sent in time" in job.result()


def test_a_value_of_another_type_pauses_the_job(app: Freehold) -> None:
    @app.task(name="waits")
    async def waits(ctx: Context) -> None:
        await ctx.wait_for_signal("paid", int)

    with Harness(app) as queue:
        job = waits.enqueue()
        app.send_signal("paid", "much")
        queue.run()
        stored = app.operator.show(job.id).job
        assert (stored.state, "does not fit its type `int`" in str(stored.reason)) == (
            "paused",
            True,
        )


def test_bad_signals_are_refused(app: Freehold) -> None:
    with Harness(app):
        for name, value, keep in (("", 1, 60), ("a", "x" * 2**20, 60), ("a", 1, 0)):
            with pytest.raises(BadInput):
                app.send_signal(name, value, keep=keep)
        with pytest.raises(BadInput):
            app.send_signal("a", float("nan"))
        assert app.send_signal("a", 1)


@pytest.fixture
def app() -> Freehold:
    return Freehold("sqlite://:memory:")
