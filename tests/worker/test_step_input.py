"""Steps with bad input: a clear error, and nothing half written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date
from pathlib import PurePath
from typing import Annotated, Any

import pytest

from freehold import Context, Freehold, Secret
from freehold.model.step import STEPS_LIMIT
from tests.testing.virtual_app import VirtualApp
from tests.worker import context_app
from tests.worker.durable_handlers import durable, error_of
from tests.worker.local_worker import ONCE, LocalWorker, kinds


def one() -> int:
    return 1


REFUSED: dict[str, tuple[Callable[[Context], Any], str]] = {
    "a name twice": (lambda ctx: (ctx.step("a", one), ctx.step("a", one)), "two steps 'a'"),
    "an empty name": (lambda ctx: ctx.step("", one), "the name of a step"),
    "no function": (lambda ctx: ctx.step("a", 7), "give a function"),  # type: ignore[call-overload]
    "no Retry": (lambda ctx: ctx.step("a", one, retry=3), "give a Retry"),  # type: ignore[call-overload]
    "a value that is no JSON": (lambda ctx: ctx.step("a", object), "is not JSON"),
    "a value over the limit": (lambda ctx: ctx.step("a", lambda: "x" * 2**20), "the limit is"),
    "a coroutine function in a plain one": (
        lambda ctx: ctx.step("a", asyncio.sleep, 0),
        "give a plain function",
    ),
    "a result of a step transaction": (
        lambda ctx: ctx.transaction(result=1, step="a"),
        "leave out result=",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_bad_input_is_refused_and_nothing_is_stored(local_worker: LocalWorker, what: str) -> None:
    body, message = REFUSED[what]

    def plain(ctx: Context) -> None:
        body(ctx)

    job_id = local_worker.add(plain, retry=ONCE)
    local_worker.run()
    assert message in error_of(local_worker, job_id)
    stored = local_worker.app._client.store.read_steps(job_id)
    assert [step.value for step in stored] == (["1"] if what == "a name twice" else [])


def test_a_value_that_does_not_fit_its_return_type_is_refused(local_worker: LocalWorker) -> None:
    def lies() -> int:
        return "seven"  # type: ignore[return-value]

    job_id = local_worker.add(durable("function", ("lie", lies), then=list), retry=ONCE)
    local_worker.run()
    assert "does not fit its return type `int`" in error_of(local_worker, job_id)
    assert local_worker.app._client.store.read_steps(job_id) == []


def test_a_return_type_that_is_no_json_is_refused(local_worker: LocalWorker) -> None:
    def unknown() -> PurePath | str:
        raise AssertionError

    job_id = local_worker.add(durable("function", ("u", unknown), then=list), retry=ONCE)
    local_worker.run()
    assert "JSON cannot represent" in error_of(local_worker, job_id)


@kinds
def test_a_step_inside_of_a_transaction_is_refused(local_worker: LocalWorker, kind: str) -> None:
    async def coroutine(ctx: Context) -> None:
        async with ctx.transaction(step="book"):
            await ctx.step("a", asyncio.sleep, 0)

    def plain(ctx: Context) -> None:
        with ctx.transaction():
            ctx.step("a", one)

    job_id = local_worker.add(coroutine if kind == "coroutine" else plain, retry=ONCE)
    local_worker.run()
    assert "has a transaction open" in error_of(local_worker, job_id)


def test_a_step_after_the_end_of_the_job_is_refused(local_worker: LocalWorker) -> None:
    seen: list[str] = []

    def plain(ctx: Context) -> None:
        with ctx.transaction():
            pass
        try:
            ctx.step("late", one)
        except ValueError as error:
            seen.append(str(error))

    local_worker.add(plain)
    local_worker.run()
    assert "no step can follow" in seen[0]


def test_a_step_that_failed_may_be_called_again_in_its_attempt(local_worker: LocalWorker) -> None:
    def fails() -> int:
        raise ConnectionError

    def plain(ctx: Context) -> int:
        try:
            return ctx.step("charge", fails)
        except ConnectionError:
            return ctx.step("charge", one)

    job_id = local_worker.add(plain, retry=ONCE)
    local_worker.run()
    assert local_worker.job(job_id).state == "succeeded"


def test_a_job_cannot_have_more_steps_than_the_limit(virtual: VirtualApp) -> None:
    @virtual.app.task(name="endless", retry=ONCE)
    async def endless(ctx: Context) -> None:
        for number in range(STEPS_LIMIT + 1):
            await ctx.step(str(number), asyncio.sleep, 0)

    job = endless.enqueue()
    virtual.work_until_idle()
    stored = virtual.app._client.store
    report = stored.read([job.id])[job.id].report
    assert report is not None
    assert "which is the limit" in str(report.error)
    assert len(stored.read_steps(job.id)) == STEPS_LIMIT


@kinds
@pytest.mark.requirement("N8")
def test_a_stored_value_that_no_longer_fits_pauses_the_job_with_the_reason(
    local_worker: LocalWorker, kind: str
) -> None:
    """Also in a handler that catches every Exception."""

    def number() -> int:
        return 7

    def day() -> date:
        raise AssertionError("must not run")

    def fails(_values: list[Any]) -> None:
        raise ConnectionError

    job_id = local_worker.add(durable(kind, ("when", number), then=fails), retry=ONCE)
    local_worker.run()
    local_worker.app.operator.retry(job_id, by="ann")
    inner = durable(kind, ("when", day), then=list)

    async def coroutine(ctx: Context) -> str:
        try:
            await inner(ctx)
        except Exception:
            return "taken for an error"
        return "not reached"

    def plain(ctx: Context) -> str:
        try:
            inner(ctx)
        except Exception:
            return "taken for an error"
        return "not reached"

    name = local_worker.job(job_id).task
    changed = Freehold(local_worker.app.url)
    changed.task(name=name)(coroutine if kind == "coroutine" else plain)
    try:
        LocalWorker(changed).run()
    finally:
        changed.close()
    job = local_worker.job(job_id)
    assert job.state == "paused"
    assert job.reason is not None
    assert "step 'when' does not fit its type `datetime.date` any more" in job.reason
    assert job.reason.endswith(f"freehold job retry {job_id} --from when")


def test_secret_values_are_marked(local_worker: LocalWorker) -> None:
    def plain(ctx: Context) -> None:
        ctx.step("token", fetches_secret)
        ctx.step("plain", one)

    def fetches_secret() -> Annotated[str, Secret]:
        return "hunter2"

    job_id = local_worker.add(plain)
    local_worker.run()
    steps = local_worker.app._client.store.read_steps(job_id)
    assert {step.name: step.hidden for step in steps} == {"token": True, "plain": False}


def test_a_child_process_has_no_steps(local_worker: LocalWorker) -> None:
    app = context_app.app
    app.url = local_worker.app.url
    try:
        job_id = context_app.wants_a_step.enqueue().id
        LocalWorker(app).run()
        assert 'isolation="process"' in error_of(local_worker, job_id)
    finally:
        app.close()
