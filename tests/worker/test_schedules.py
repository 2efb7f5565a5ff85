"""Schedules that an app declares: written when a worker starts, fired by any worker."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from freehold import Context, Cron, Every, Freehold
from freehold.client import Client
from freehold.clock import VirtualClock
from freehold.errors import BadArguments, BadInput, BadSettings
from freehold.model.state import State
from freehold.store.open import open_memory
from freehold.testing import Harness

START = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def an_app(name: str = "shop") -> Freehold:
    return Freehold("sqlite://:memory:", name=name)


def in_memory(*apps: Freehold) -> Client:
    """One store for several apps."""
    client = Client(open_memory(VirtualClock()))
    for app in apps:
        app._swap_client(client)
    return client


def start_worker(app: Freehold) -> None:
    assert asyncio.run(app.arun_worker(until_idle=True)) == 0


@pytest.mark.requirement("N1", "N3")
@pytest.mark.parametrize("isolation", ["auto", "coroutine"])
def test_a_handler_knows_its_tick(isolation: str) -> None:
    app, seen = an_app(), list[Any]()
    if isolation == "coroutine":

        @app.cron("0 7 * * *", zone="Europe/Berlin")
        async def digest(ctx: Context) -> None:
            seen.append(ctx.tick)
    else:

        @app.cron("0 7 * * *", zone="Europe/Berlin", queue="slow", schedule="digest")
        def digest(ctx: Context) -> None:
            seen.append(ctx.tick)

    with Harness(app, start=START) as queue:
        queue.run(seconds=2 * 86400)
    assert [tick.at for tick in seen] == [START.replace(hour=6), START.replace(hour=6) + DAY]


def test_a_job_without_a_schedule_has_no_tick() -> None:
    app, seen = an_app(), list[Any]()

    @app.task
    def plain(ctx: Context) -> None:
        seen.append(ctx.tick)

    with Harness(app) as queue:
        plain.enqueue()
        queue.run()
    assert seen == [None]


@pytest.mark.requirement("N3")
def test_advance_fires_the_ticks_of_its_time() -> None:
    app = an_app()

    @app.task
    def sync(customer: int) -> None: ...

    app.schedule("sync-7", Every(hours=1), sync.prepare(7), overlap="allow")
    with Harness(app, start=START) as queue:
        queue.advance(3 * 3600)
        assert [job.created_at for job in queue.jobs(sync)] == [
            START + timedelta(hours=hour) for hour in (1, 2, 3)
        ]
        assert queue.run().succeeded == 3
        assert queue.run().succeeded == 0, "a run alone does not go on to the next tick"


@pytest.mark.requirement("N1")
def test_a_worker_that_does_not_know_the_task_fires_its_schedule() -> None:
    knows, other = an_app("knows"), an_app("other")

    @knows.cron("* * * * * *", name="digest")
    def digest() -> None: ...

    client = in_memory(knows, other)
    start_worker(knows)
    clock = client.database._engine._writer._clock  # type: ignore[attr-defined]
    clock.advance(2)
    start_worker(other)
    (schedule,) = client.store.schedules()
    assert schedule.fired == 1
    assert other.operator.schedule(digest.name).last_job_state is State.QUEUED


@pytest.mark.requirement("N3")
def test_what_the_code_no_longer_declares_is_paused_by_the_next_worker() -> None:
    before, after = an_app(), an_app()

    @before.cron("0 7 * * *", name="digest")
    def digest() -> None: ...

    client = in_memory(before, after)
    start_worker(before)
    start_worker(after)
    (schedule,) = client.store.schedules()
    assert schedule.pause_reason == "the app shop no longer declares it"


def test_a_name_with_another_task_stops_the_worker_at_its_start() -> None:
    shop, mail = an_app("shop"), an_app("mail")

    @shop.cron("0 7 * * *", schedule="digest")
    def one() -> None: ...

    @mail.cron("0 7 * * *", schedule="digest")
    def two() -> None: ...

    in_memory(shop, mail)
    start_worker(shop)
    with pytest.raises(BadInput, match="exists with another task"):
        start_worker(mail)


def test_the_name_of_an_app_is_that_of_its_module() -> None:
    assert Freehold("sqlite://:memory:")._declarations.app == __name__
    assert an_app("shop").tenant("acme")._declarations.app == "shop"


@pytest.mark.requirement("N3")
def test_each_tenant_has_its_own_declarations() -> None:
    app = an_app()

    @app.task
    def sync(customer: int) -> None: ...

    app.schedule("sync", Every(hours=1), sync.prepare(0))
    app.tenant("acme").schedule("sync", Every(hours=2), sync.prepare(7))
    assert [each.timing for each in app._declarations.of(None)] == [Every(hours=1)]
    assert [each.timing for each in app._declarations.of("acme")] == [Every(hours=2)]
    assert app._declarations.tenants == {"acme"}


def test_a_function_with_parameters_is_refused_by_cron_with_what_to_do() -> None:
    app = an_app()
    with pytest.raises(BadArguments, match=r"app\.schedule\(name, Cron"):

        @app.cron("0 7 * * *")
        def sync(customer: int) -> None: ...


def test_one_name_twice_in_the_code_is_refused() -> None:
    app = an_app()

    @app.task
    def sync(customer: int) -> None: ...

    app.schedule("sync", Every(hours=1), sync.prepare(7))
    app.schedule("sync", Every(hours=1), sync.prepare(7))  # as a module that is imported twice
    with pytest.raises(BadSettings, match="two schedules are called sync"):
        app.schedule("sync", Every(hours=1), sync.prepare(8))


@pytest.mark.parametrize("name", ["unique_key", "target"])
def test_the_keys_of_schedules_are_reserved(name: str) -> None:
    app = an_app()

    @app.task
    def sync(customer: int) -> None: ...

    with pytest.raises(BadInput, match="those of schedules"):
        sync.using(**{name: "schedule:books"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"within": "3 days"}, "seconds or a timedelta"),
        ({"jitter": True}, "seconds or a timedelta"),
        ({"timing": "0 7 * * *"}, "is no time"),
        ({"overlap": "no"}, "choose one of"),
    ],
)
def test_wrong_options_are_refused_where_they_are_written(
    given: dict[str, Any], message: str
) -> None:
    app = an_app()

    @app.task
    def sync(customer: int) -> None: ...

    with pytest.raises(BadInput, match=message):
        app.schedule("sync", **{"timing": Cron("0 7 * * *"), "job": sync.prepare(1), **given})


@pytest.mark.requirement("N1")
def test_a_worker_starts_while_the_store_is_down_and_declares_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The declarations are tried again beside the worker."""
    from freehold import schedules
    from freehold.errors import StoreUnavailable

    monkeypatch.setattr(schedules, "_RETRY_SECONDS", 0.0)
    tries: list[int] = []
    written = asyncio.Event()

    async def write() -> None:
        tries.append(1)
        if len(tries) < 3:
            raise StoreUnavailable("down")
        written.set()

    async def worker() -> None:
        async with an_app()._declarations.written([write]):
            await asyncio.wait_for(written.wait(), 60)

    asyncio.run(worker())
    assert len(tries) == 3


def test_a_writer_that_is_refused_does_not_keep_the_others_from_writing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a host that started during an outage, and names a tenant that does not exist."""
    from freehold import schedules
    from freehold.errors import StoreUnavailable, TenantNotFound

    monkeypatch.setattr(schedules, "_RETRY_SECONDS", 0.0)
    tries: list[str] = []
    written = asyncio.Event()

    async def check() -> None:
        tries.append("check")
        raise StoreUnavailable("down") if tries.count("check") < 2 else TenantNotFound("no tenant")

    async def declare() -> None:
        tries.append("declare")
        if tries.count("declare") < 4:
            raise StoreUnavailable("down")
        written.set()

    async def host() -> None:
        async with an_app()._declarations.written([check, declare]):
            await asyncio.wait_for(written.wait(), 60)

    asyncio.run(host())
    assert (tries.count("check"), tries.count("declare")) == (2, 4)
