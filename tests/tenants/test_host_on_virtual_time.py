"""A host and its tenants: which are served, at what cost, and how errors affect the others."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import pytest

from freehold import Freehold
from freehold.exit_codes import EXIT_CRASHED
from freehold.model.tenant import TenantState
from freehold.tasks import Registry
from freehold.tenants.wake_schedule import IDLE_SECONDS
from tests.tenants.virtual_host import VirtualTenants
from tests.worker.test_misfit_scan import insert_misfits


@pytest.fixture
def tenants() -> VirtualTenants:
    return VirtualTenants()


def job(
    tenants: VirtualTenants, seconds: float = 0.01, log: list[Any] | None = None, name: str = "job"
) -> Any:
    @tenants.app.task(name=name)
    async def job(text: str = "") -> None:
        if log is not None:
            log.append(text)
        await asyncio.sleep(seconds)

    return job


@pytest.mark.requirement("S4.2")
def test_all_tenants_are_served_and_all_workers_end_when_nothing_is_left(
    tenants: VirtualTenants,
) -> None:
    names = [f"t{number}" for number in range(50)]
    tenants.add(*names)
    task = job(tenants)

    async def scenario() -> None:
        async with tenants.running_host(concurrency=4) as host:
            for name in names:
                tenants.enqueue(name, task, count=3)
            await tenants.until(lambda: all(tenants.succeeded(name) == 3 for name in names), 60)
            await tenants.until(lambda: not host.workers, 3 * IDLE_SECONDS)
            assert host.slots.use.held == host.slots.use.running == 0

    tenants.play(scenario())


@pytest.mark.requirement("S4.2")
@pytest.mark.parametrize("has_no_notifications", [False, True])
def test_idle_tenants_cost_no_statements_and_their_shard_one_check_per_interval(
    tenants: VirtualTenants, has_no_notifications: bool
) -> None:
    tenants.add(*[f"t{number}" for number in range(20)])
    tenants.home.has_no_notifications = has_no_notifications
    job(tenants)

    async def scenario() -> None:
        async with tenants.running_host(poll_interval_ms=250):
            await asyncio.sleep(700.0)
            checks, statements = tenants.home.check_count, tenants.statements()
            await asyncio.sleep(60.0)
            checks = tenants.home.check_count - checks
            assert checks <= (60 / 0.25 if has_no_notifications else 60) + 1
            # By now maintenance visits each of the 20 tenants within 640 s, later within an hour.
            assert tenants.statements() - statements <= 3 * 5

    tenants.play(scenario())


@pytest.mark.requirement("S4.2")
def test_a_parked_job_of_an_idle_tenant_is_run_by_a_new_process_that_knows_its_task(
    tenants: VirtualTenants,
) -> None:
    tenants.add("a")
    task = job(tenants)

    async def scenario() -> None:
        tenants.enqueue("a", task)
        assert await tenants.host(Registry(), until_idle=True).run() == 0
        assert tenants.succeeded("a") == 0
        async with tenants.running_host():
            await tenants.until(lambda: tenants.succeeded("a") == 1, 10)

    tenants.play(scenario())


def _older() -> Registry:
    """The same task before it had a parameter."""
    app = Freehold("sqlite://:memory:")

    @app.task(name="job")
    async def job() -> None: ...

    return app.tasks


@pytest.mark.requirement("S4.2", "P4")
def test_a_misfit_of_an_idle_tenant_is_run_by_a_new_process_whose_code_fits(
    tenants: VirtualTenants,
) -> None:
    tenants.add("a")
    task = job(tenants)

    async def scenario() -> None:
        tenants.enqueue("a", task, "text")
        assert await tenants.host(_older(), until_idle=True).run() == 0
        assert (tenants.succeeded("a"), tenants.store("a").counts().parked) == (0, 1)
        async with tenants.running_host():
            await tenants.until(lambda: tenants.succeeded("a") == 1, 10)

    tenants.play(scenario())


@pytest.mark.requirement("S4.2", "P4")
def test_a_misfit_of_an_idle_tenant_is_found_behind_many_others(tenants: VirtualTenants) -> None:
    tenants.add("a")
    job(tenants)

    async def scenario() -> None:
        with tenants.home.databases["a"]._engine.transaction() as connection:
            insert_misfits(connection, 500, tenants.clock.micros + 3600 * 1_000_000)
        async with tenants.running_host():
            await tenants.until(lambda: tenants.succeeded("a") == 1, 30)

    tenants.play(scenario())


@pytest.mark.requirement("S4.2", "P4")
def test_a_misfit_of_an_idle_tenant_fails_after_its_wait(tenants: VirtualTenants) -> None:
    tenants.add("a")
    task = job(tenants)

    async def scenario() -> None:
        tenants.enqueue("a", task, "text")
        host = tenants.host(_older(), misfit_seconds=60.0)
        running = asyncio.create_task(host.run())
        await asyncio.sleep(50.0)
        assert tenants.store("a").counts().parked == 1
        await tenants.until(lambda: not tenants.store("a").has_live_jobs(), 300)
        host.drain()
        assert await running == 0

    tenants.play(scenario())


@pytest.mark.requirement("S4.2")
def test_a_job_parked_by_an_older_process_is_soon_run_by_a_newer_one(
    tenants: VirtualTenants,
) -> None:
    """The newer one gets no notification, and at its check the job is no longer ready."""
    tenants.add("a")
    tenants.home.has_no_notifications = True
    task = job(tenants)

    async def scenario() -> None:
        async with tenants.running_host() as host:
            await asyncio.sleep(60.0)
            assert not host.workers
            tenants.enqueue("a", task)
            tenants.park_ready_jobs("a")
            await tenants.until(lambda: tenants.succeeded("a") == 1, 2 * 60.0)

    tenants.play(scenario())


@pytest.mark.requirement("S4.3")
@pytest.mark.parametrize("sleeps", [True, False])
def test_a_stalled_lane_is_promoted(tenants: VirtualTenants, sleeps: bool) -> None:
    tenants.add("a")
    task = job(tenants)
    lasts = job(tenants, 200.0, name="lasts")

    async def scenario() -> None:
        async with tenants.running_host():
            await asyncio.sleep(60.0)
            if not sleeps:
                tenants.enqueue("a", lasts)
            tenants.enqueue("a", task, target="lane", count=2)
            tenants.stall_lane("a")
            await tenants.until(lambda: tenants.succeeded("a") == 1, 2 * 60.0)

    tenants.play(scenario())


@pytest.mark.parametrize("has_no_notifications", [False, True])
def test_a_job_that_becomes_due_in_an_idle_tenant_is_run(
    tenants: VirtualTenants, has_no_notifications: bool
) -> None:
    tenants.add("a", "b")
    tenants.home.has_no_notifications = has_no_notifications
    task = job(tenants)

    async def scenario() -> None:
        async with tenants.running_host() as host:
            tenants.enqueue("b", task, delay=3600)
            await asyncio.sleep(3590)
            assert not host.workers
            assert await tenants.until(lambda: tenants.succeeded("b") == 1, 20) <= 10 + 1.5

    tenants.play(scenario())


@pytest.mark.requirement("S4.2", "S3.6")
@pytest.mark.parametrize("hosts", [1, 2])
def test_shares_follow_the_weights_while_all_are_busy(tenants: VirtualTenants, hosts: int) -> None:
    for name, weight in (("five", 5.0), ("three", 3.0), ("one", 1.0)):
        tenants.add(name, weight=weight)
    log: list[str] = []
    task = job(tenants, 0.02, log)

    async def scenario() -> None:
        for name in ("five", "three", "one"):
            tenants.enqueue(name, task, name, count=600)
        async with AsyncExitStack() as stack:
            for _ in range(hosts):
                await stack.enter_async_context(tenants.running_host(concurrency=10))
            await tenants.until(lambda: len(log) >= 900, 60)

    tenants.play(scenario())
    counts = Counter(log[:900])
    assert counts["five"] == pytest.approx(500, rel=0.1)
    assert counts["three"] == pytest.approx(300, rel=0.1)
    assert counts["one"] == pytest.approx(100, rel=0.1)


def test_running_jobs_are_bounded_by_the_slots_and_by_max_slots(tenants: VirtualTenants) -> None:
    tenants.add("bound", max_slots=2, weight=100.0)
    tenants.add("free")
    running: Counter[str] = Counter()
    maximum: Counter[str] = Counter()

    @tenants.app.task(name="counted")
    async def counted(name: str) -> None:
        for key in (name, "all"):
            running[key] += 1
            maximum[key] = max(maximum[key], running[key])
        await asyncio.sleep(0.02)
        for key in (name, "all"):
            running[key] -= 1

    async def scenario() -> None:
        for name in ("bound", "free"):
            tenants.enqueue(name, counted, name, count=200)
        async with tenants.running_host(concurrency=6):
            await tenants.until(
                lambda: tenants.succeeded("bound") + tenants.succeeded("free") == 400, 60
            )

    tenants.play(scenario())
    assert maximum == {"all": 6, "bound": 2, "free": maximum["free"]}


@pytest.mark.requirement("S4.2")
def test_a_broken_tenant_is_degraded_and_served_again_when_it_is_repaired(
    tenants: VirtualTenants, caplog: pytest.LogCaptureFixture
) -> None:
    tenants.add("bad", "good")
    tenants.home.broken["bad"] = "its table is gone"
    task = job(tenants)

    async def scenario() -> None:
        async with tenants.running_host() as host:
            tenants.enqueue("bad", task, count=2)
            tenants.enqueue("good", task, count=2)
            await tenants.until(lambda: tenants.succeeded("good") == 2, 10)
            await asyncio.sleep(300)
            assert tenants.directory_writes == [("bad", "its table is gone")]
            assert tenants.state("bad") is TenantState.DEGRADED
            assert "bad" not in host.workers
            del tenants.home.broken["bad"]
            await tenants.until(lambda: tenants.succeeded("bad") == 2, 65)
            assert tenants.directory_writes[1:] == [("bad", "healed")]
            assert tenants.state("bad") is TenantState.ACTIVE

    with caplog.at_level("ERROR", "freehold"):
        tenants.play(scenario())
    assert [record.getMessage() for record in caplog.records] == [
        "tenant bad is degraded and not served for now: its table is gone"
    ]


@pytest.mark.requirement("S4.2")
def test_a_worker_that_crashes_does_not_affect_other_tenants(tenants: VirtualTenants) -> None:
    tenants.add("bad", "good")
    task = job(tenants, 1.0)

    async def scenario() -> None:
        async with tenants.running_host() as host:
            tenants.enqueue("bad", task, count=2)
            tenants.enqueue("good", task, count=100)
            await tenants.until(lambda: "bad" in host.workers and "good" in host.workers, 10)
            await asyncio.sleep(0.01)
            host.workers["bad"].worker._renewer.lose_expired = None  # type: ignore[method-assign,assignment]
            host.workers["bad"].worker._renewer.wake()
            await tenants.until(lambda: len(tenants.directory_writes) == 1, 60)
            assert tenants.directory_writes == [("bad", "its worker crashed: see the log")]
            await tenants.until(lambda: tenants.succeeded("bad") == 2, 120)
            await tenants.until(lambda: tenants.succeeded("good") == 100, 120)
            assert tenants.state("bad") is TenantState.ACTIVE

    tenants.play(scenario())


def test_a_part_of_the_host_that_crashes_ends_it_and_leaves_nothing_leased(
    tenants: VirtualTenants,
) -> None:
    tenants.add("a")
    task = job(tenants, 60.0)

    async def scenario() -> int:
        tenants.enqueue("a", task, count=5)
        host = tenants.host()
        running = asyncio.create_task(host.run())
        await tenants.until(lambda: tenants.leased() == 5, 10)
        host.schedule = None  # type: ignore[assignment]
        return await running

    assert tenants.play(scenario()) == EXIT_CRASHED
    assert tenants.leased() == 0


@pytest.mark.requirement("S4.11", "S4.2")
@pytest.mark.parametrize("stops_now", [False, True])
def test_drain_leaves_nothing_leased_in_any_tenant(
    tenants: VirtualTenants, stops_now: bool
) -> None:
    names = [f"t{number}" for number in range(5)]
    tenants.add(*names)
    task = job(tenants, 30.0)

    async def scenario() -> float:
        for name in names:
            tenants.enqueue(name, task, count=5)
        host = tenants.host(concurrency=10, shutdown_grace_seconds=300.0)
        running = asyncio.create_task(host.run())
        await asyncio.sleep(0.001)
        await tenants.until(lambda: host.slots.use.running == 10, 10)
        began = asyncio.get_running_loop().time()
        host.drain()
        await asyncio.sleep(1.0)
        if stops_now:
            host.stop_now()
        assert await running == 0
        return asyncio.get_running_loop().time() - began

    took = tenants.play(scenario())
    assert tenants.leased() == 0
    done = sum(tenants.succeeded(name) for name in names)
    assert done == (0 if stops_now else 10)
    assert took < 5 if stops_now else 25 < took < 35


def test_a_tenant_that_is_paused_in_the_directory_is_served_again_after_the_pause(
    tenants: VirtualTenants,
) -> None:
    tenants.add("a", "b")
    task = job(tenants, 1.0)

    async def scenario() -> None:
        async with tenants.running_host(concurrency=2) as host:
            tenants.enqueue("a", task, count=60)
            await tenants.until(lambda: tenants.succeeded("a") >= 2, 20)
            tenants.change("a", state=TenantState.PAUSED)
            await tenants.until(lambda: "a" not in host.workers, 10)
            done = tenants.succeeded("a")
            await asyncio.sleep(60)
            assert tenants.succeeded("a") == done
            tenants.change("a", state=TenantState.ACTIVE)
            await tenants.until(lambda: tenants.succeeded("a") == 60, 60)

    tenants.play(scenario())


def test_a_host_until_idle_serves_all_and_ends(tenants: VirtualTenants) -> None:
    names = [f"t{number}" for number in range(40)]
    tenants.add(*names, "broken")
    tenants.home.broken["broken"] = "no table"
    task = job(tenants, 0.5)

    async def scenario() -> int:
        for name in names:
            tenants.enqueue(name, task, count=2)
        return await tenants.host(concurrency=4, until_idle=True).run()

    assert tenants.play(scenario()) == 0
    assert all(tenants.succeeded(name) == 2 for name in names)


def test_workers_are_listed_with_the_numbers_of_their_tenant(tenants: VirtualTenants) -> None:
    tenants.add("small", max_slots=3)
    tenants.add("large")
    task = job(tenants, 30.0)

    async def scenario() -> None:
        async with tenants.running_host(concurrency=10):
            tenants.enqueue("small", task, count=20)
            await tenants.until(lambda: tenants.leased() == 3, 10)
            tenants.enqueue("large", task, count=20)
            await tenants.until(lambda: tenants.leased() == 10, 10)
            await asyncio.sleep(3.0)
            for name, slots, running in (("small", 3, 3), ("large", 10, 7)):
                (live,) = tenants._clients[name].store.workers()
                assert (live.concurrency, live.running) == (slots, running)

    tenants.play(scenario())
