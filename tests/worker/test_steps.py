"""ctx.step: a part of a handler runs once for its job, and every attempt gets its value."""

from __future__ import annotations

import asyncio
import functools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from freehold import Context, LeaseLost, Retry, Snooze
from freehold.store.types import NewStep
from freehold.store.verbs import steps as step_verbs
from tests.testing.virtual_app import VirtualApp
from tests.worker.durable_handlers import durable, the_old_owner_of_a_step_loses
from tests.worker.local_worker import AT_ONCE, ONCE, LocalWorker, kinds


@dataclass(frozen=True)
class Receipt:
    number: int
    day: date


# -- once ------------------------------------------------------------------------------------


@kinds
@pytest.mark.requirement("N8")
def test_a_step_that_returned_is_not_run_again_and_its_value_keeps_its_type(
    local_worker: LocalWorker, kind: str
) -> None:
    calls: list[str] = []

    def charge() -> Receipt:
        calls.append("charge")
        return Receipt(7, date(2030, 1, 2))

    def ship() -> tuple[int, ...]:
        calls.append("ship")
        if len(calls) < 4:
            raise ConnectionError
        return (1, 2)

    def then(values: list[Any]) -> str:
        assert values == [Receipt(7, date(2030, 1, 2)), (1, 2)]
        return "done"

    job_id = local_worker.add(
        durable(kind, ("charge", charge), ("ship", ship), then=then), retry=AT_ONCE
    )
    worker = local_worker.run()
    job = local_worker.job(job_id)
    assert calls == ["charge", "ship", "ship", "ship"]
    assert (job.state, job.attempt) == ("succeeded", 3)
    assert worker.telemetry.total("steps") == 2


@kinds
def test_a_new_value_is_returned_as_it_will_be_read(local_worker: LocalWorker, kind: str) -> None:
    """Else the first attempt would compute with another value than the later ones."""

    def untyped():  # type: ignore[no-untyped-def]
        return {"pair": (1, 2)}

    def then(values: list[Any]) -> Any:
        assert values == [{"pair": [1, 2]}]

    job_id = local_worker.add(durable(kind, ("pair", untyped), then=then))
    local_worker.run()
    assert local_worker.job(job_id).state == "succeeded"


@pytest.mark.requirement("N8")
def test_the_first_attempt_writes_once_for_each_step_and_later_ones_read_once(
    virtual: VirtualApp,
) -> None:
    async def one() -> int:
        return 1

    @virtual.app.task(name="counts", retry=AT_ONCE)
    async def counts(ctx: Context) -> None:
        await ctx.step("a", one)
        await ctx.step("b", one)
        if ctx.attempt < 3:
            raise ValueError

    counts.enqueue()
    virtual.work_until_idle()
    seen = [name for name, _ in virtual.database.seen if name in ("put_steps", "read_steps")]
    assert seen == ["put_steps", "put_steps", "read_steps", "read_steps"]


def test_steps_of_one_moment_share_a_write(virtual: VirtualApp) -> None:
    async def number(value: int) -> int:
        return value

    @virtual.app.task(name="fans_out")
    async def fans_out(ctx: Context) -> list[int]:
        steps = [ctx.step(f"n:{value}", number, value) for value in range(50)]
        return list(await asyncio.gather(*steps))

    job = fans_out.enqueue()
    virtual.work_until_idle()
    report = virtual.app._client.store.read([job.id])[job.id].report
    assert report is not None
    assert report.result == list(range(50))
    assert len(virtual.database.times("put_steps")) == 1


def test_steps_that_begin_at_once_read_the_earlier_ones_once(virtual: VirtualApp) -> None:
    async def number(value: int) -> int:
        return value

    @virtual.app.task(name="fans_out_again", retry=AT_ONCE)
    async def fans_out_again(ctx: Context) -> None:
        await ctx.step("first", number, 0)
        first = 100 * ctx.attempt
        values = range(first, first + 20)
        await asyncio.gather(*(ctx.step(f"n:{value}", number, value) for value in values))
        if ctx.attempt == 1:
            raise ValueError

    @virtual.app.task(name="begins_with_many", retry=AT_ONCE)
    async def begins_with_many(ctx: Context) -> None:
        steps = [ctx.step(f"{ctx.attempt}:{value}", number, value) for value in range(20)]
        await asyncio.gather(*steps)
        if ctx.attempt == 1:
            raise ValueError

    virtual.database.slow = {"read_steps"}
    jobs = [fans_out_again.enqueue(), begins_with_many.enqueue()]
    virtual.work_until_idle()
    assert len(virtual.database.times("read_steps")) == len(jobs)
    for job, count in zip(jobs, (41, 40), strict=True):
        steps = virtual.app._client.store.read_steps(job.id)
        assert [step.number for step in steps] == list(range(1, count + 1))


def test_steps_in_several_threads_have_numbers_of_their_own(local_worker: LocalWorker) -> None:
    def plain(ctx: Context) -> None:
        with ThreadPoolExecutor(4) as threads:
            names = [f"{ctx.attempt}:{number}" for number in range(20)]
            list(threads.map(lambda name: ctx.step(name, len, name), names))
        if ctx.attempt == 1:
            raise ValueError

    job_id = local_worker.add(plain, retry=AT_ONCE)
    local_worker.run()
    steps = local_worker.app._client.store.read_steps(job_id)
    assert [step.number for step in steps] == list(range(1, 41))


def test_a_step_that_outlives_its_attempt_after_gather_is_not_stored(
    local_worker: LocalWorker,
) -> None:
    """`asyncio.gather` fails with the first error, and leaves its other coroutines running."""
    has_begun, next_attempt, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    errors: list[str] = []

    async def slow(attempt: int) -> int:
        has_begun.set()
        if attempt == 1:
            await next_attempt.wait()
        return attempt

    async def fails() -> None:
        await has_begun.wait()
        raise ValueError

    async def outlives(ctx: Context) -> None:
        try:
            await ctx.step("slow", slow, 1)
        except LeaseLost:
            errors.append("LeaseLost")
        ended.set()

    async def coroutine(ctx: Context) -> int:
        if ctx.attempt == 1:
            await asyncio.gather(outlives(ctx), ctx.step("fails", fails))
        next_attempt.set()
        await ended.wait()
        return await ctx.step("slow", slow, ctx.attempt)

    job_id = local_worker.add(coroutine, retry=AT_ONCE)
    local_worker.run()
    assert errors == ["LeaseLost"]
    steps = local_worker.app._client.store.read_steps(job_id)
    assert [(step.name, step.value) for step in steps] == [("slow", "2")]


@pytest.mark.requirement("N8")
def test_a_timeout_during_the_write_leaves_a_step_that_is_not_run_again(
    local_worker: LocalWorker,
) -> None:
    """The write has the value already: a second one would be returned, and the first stored."""
    calls: list[int] = []

    async def coroutine(ctx: Context) -> list[int]:
        limit = asyncio.timeout(None)

        async def charge() -> int:
            calls.append(len(calls) + 1)
            limit.reschedule(0.0)  # expires when the step waits next, for its write
            return calls[-1]

        async def ship() -> int:
            return 2

        try:
            async with limit:
                await ctx.step("charge", charge)
        except TimeoutError:
            return [await ctx.step("charge", charge), await ctx.step("ship", ship)]
        raise AssertionError("the timeout has not expired")

    job_id = local_worker.add(coroutine, retry=ONCE)
    local_worker.run()
    report = local_worker.job(job_id).report
    assert report is not None
    assert (report.result, calls) == ([1, 2], [1])
    steps = local_worker.app._client.store.read_steps(job_id)
    assert [(step.name, step.number, step.value) for step in steps] == [
        ("charge", 1, "1"),
        ("ship", 2, "2"),
    ]


def test_an_unexpected_error_of_a_write_fails_its_steps_only(
    local_worker: LocalWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later steps are written: they would wait for a flush that has ended."""
    row_of = step_verbs._row
    errors = [RuntimeError("no store error")]

    def fails_once(step: NewStep) -> dict[str, Any]:
        if errors:
            raise errors.pop()
        return row_of(step)

    monkeypatch.setattr(step_verbs, "_row", fails_once)

    async def one() -> int:
        return 1

    async def coroutine(ctx: Context) -> int:
        async with asyncio.timeout(120.0):
            with pytest.raises(RuntimeError, match="no store error"):
                await ctx.step("a", one)
            return await ctx.step("b", one)

    job_id = local_worker.add(coroutine, retry=ONCE)
    local_worker.run()
    report = local_worker.job(job_id).report
    assert report is not None
    assert report.result == 1


@kinds
def test_a_step_is_repeated_within_its_attempt(local_worker: LocalWorker, kind: str) -> None:
    tries: list[int] = []

    def fails(times: int) -> int:
        tries.append(times)
        if len(tries) < times:
            raise ConnectionError
        return len(tries)

    async def awaited(times: int) -> int:
        return fails(times)

    retry = Retry(max_attempts=3, base_seconds=0)

    async def coroutine(ctx: Context) -> int:
        return await ctx.step("flaky", awaited, 3, retry=retry)

    def plain(ctx: Context) -> int:
        return ctx.step("flaky", fails, times=3, retry=retry)

    job_id = local_worker.add(coroutine if kind == "coroutine" else plain, retry=ONCE)
    local_worker.run()
    job = local_worker.job(job_id)
    assert job.report is not None
    assert (job.attempt, job.report.result, tries) == (1, 3, [3, 3, 3])


def test_a_step_is_not_repeated_for_what_its_retry_excludes(local_worker: LocalWorker) -> None:
    tries: list[str] = []

    def snoozes() -> None:
        tries.append("snooze")
        if len(tries) == 1:
            raise Snooze(0)

    def breaks() -> None:
        tries.append("break")
        raise KeyError("no")

    def plain(ctx: Context) -> None:
        ctx.step("snooze", snoozes, retry=Retry(base_seconds=0))
        ctx.step("break", breaks, retry=Retry(base_seconds=0, give_up_on=(KeyError,)))

    job_id = local_worker.add(plain, retry=ONCE)
    local_worker.run()
    assert tries == ["snooze", "snooze", "break"]
    assert local_worker.job(job_id).state == "failed"


def test_functions_of_every_form_can_be_steps(local_worker: LocalWorker) -> None:
    class Shop:
        async def price(self, number: int) -> date:
            return date(2030, 1, number)

        def __call__(self, number: int) -> date:
            return date(2031, 1, number)

    seen: list[Any] = []

    async def coroutine(ctx: Context) -> None:
        shop = Shop()
        seen.extend(
            [
                await ctx.step("method", shop.price, 1),
                await ctx.step("partial", functools.partial(shop.price, number=2)),
                await ctx.step("thread", asyncio.to_thread, shop, 3),
                await ctx.step("lambda", lambda: shop.price(4)),
            ]
        )
        if ctx.attempt == 1:
            raise ValueError

    local_worker.add(coroutine, retry=AT_ONCE)
    local_worker.run()
    assert (
        seen[:4] == seen[4:] == [date(2030, 1, 1), date(2030, 1, 2), date(2031, 1, 3), "2030-01-04"]
    )


# -- fenced ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("slow_renewer")
@kinds
@pytest.mark.requirement("N8")
def test_of_two_owners_that_write_the_same_step_the_old_one_loses(
    local_worker: LocalWorker, kind: str
) -> None:
    the_old_owner_of_a_step_loses(local_worker, kind)


def test_the_write_of_a_step_outlasts_an_outage(virtual: VirtualApp) -> None:
    """The step has had its effect: giving up would make the next attempt run it again."""
    calls: list[int] = []

    async def charge() -> int:
        calls.append(1)
        return 7

    @virtual.app.task(name="order")
    async def order(ctx: Context) -> int:
        return await ctx.step("charge", charge)

    job = order.enqueue()

    async def scenario() -> None:
        virtual.database.refused = {"put_steps"}
        async with virtual.working():
            await virtual.until(lambda: len(virtual.database.times("put_steps")) > 5, 20.0)
            virtual.database.refused = set()
            await virtual.until(lambda: virtual.state(job.id) == "succeeded", 20.0)

    virtual.run(scenario())
    assert calls == [1]
