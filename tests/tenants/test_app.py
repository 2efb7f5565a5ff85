"""`app.tenant()`: the same tasks with the jobs of one tenant."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from freehold import BadInput, BadName, Every, Freehold, NewJob, State, TenantNotFound
from freehold.model.tenant import HOME_SHARD
from freehold.tenants.host import TenantHost
from tests.tenants.tenant_stores import EAST


@pytest.fixture
def app(urls: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Freehold]:
    monkeypatch.setenv("FREEHOLD_SHARD_EAST", urls[EAST])
    app = Freehold(urls[HOME_SHARD])
    app.migrate()
    yield app
    app.close()


@pytest.mark.requirement("S4.2")
def test_each_tenant_has_its_jobs_and_all_have_the_tasks(app: Freehold) -> None:
    @app.task(name="double")
    def double(number: int) -> int:
        return 2 * number

    app.tenants.create("acme")
    app.tenants.create("beta", EAST)
    home = double.enqueue(1)
    acme = double.using(tenant="acme", queue="default").enqueue(2)
    beta = app.tenant("beta").enqueue_many([double.prepare(3)])[0]
    assert home.id == acme.id == beta.id
    assert [handle.read().args for handle in (home, acme, beta)] == [
        '{"number":1}',
        '{"number":2}',
        '{"number":3}',
    ]
    assert app.tenant("acme").run_worker(until_idle=True, concurrency=1) == 0
    assert [handle.read().state for handle in (home, acme, beta)] == [
        State.QUEUED,
        State.SUCCEEDED,
        State.QUEUED,
    ]
    assert app.tenant("acme").operator.counts().ready == 0
    assert app.tenant("acme").tasks is app.tasks
    assert app.tenant("acme").tenant("beta") is app.tenant("beta")


def test_tenants_can_be_awaited(app: Freehold) -> None:
    @app.task(name="nothing")
    def nothing() -> None: ...

    app.tenants.create("acme")

    async def scenario() -> State:
        handle = await nothing.using(tenant="acme").aenqueue()
        try:
            return (await handle.aread()).state
        finally:
            await app.aclose()

    assert asyncio.run(scenario()) is State.QUEUED


def test_a_prepared_job_is_not_given_to_the_wrong_tenant(app: Freehold) -> None:
    @app.task(name="nothing")
    def nothing() -> None: ...

    with pytest.raises(BadInput, match=r"app\.tenant\('acme'\)\.enqueue_many"):
        nothing.using(tenant="acme").prepare()


def test_unknown_and_invalid_tenants_are_refused(app: Freehold) -> None:
    app.tenants.create("acme")
    with pytest.raises(TenantNotFound, match="did you mean acme"):
        app.tenant("acne")._submit(NewJob(task="t"))
    with pytest.raises(BadName):
        app.tenant("Acme; drop")


def test_an_app_finds_its_tenant_after_a_move_by_another_process(
    app: Freehold, urls: dict[str, str]
) -> None:
    app.tenants.create("acme")
    acme = app.tenant("acme")
    first = acme._submit(NewJob(task="t"))
    other_app = Freehold(urls[HOME_SHARD])
    other_app.tenants.move("acme", EAST)
    other_app.close()
    second = acme._submit(NewJob(task="t"))
    assert second.id > first.id
    assert first.read().state is State.QUEUED
    assert app.tenants.get("acme").shard == EAST


def test_a_dropped_and_recreated_tenant_is_empty(app: Freehold, urls: dict[str, str]) -> None:
    app.tenants.create("acme")
    acme = app.tenant("acme")
    acme._submit(NewJob(task="t"))
    other_app = Freehold(urls[HOME_SHARD])
    other_app.tenants.drop("acme", force=True)
    other_app.tenants.create("acme")
    other_app.close()
    assert acme.operator.counts().ready == 0
    assert acme._submit(NewJob(task="t")).created


def test_contradicting_selections_of_tenants_are_refused(app: Freehold) -> None:
    """A worker of one tenant must not run the jobs of others, nor one without tenants ignore it."""
    app.tenants.create("acme")
    with pytest.raises(BadInput, match="not both"):
        app.tenant("acme").run_worker(tenants="all", until_idle=True)
    for tenants in (None, ["acme"]):
        with pytest.raises(BadInput, match="is for --tenants all"):
            app.run_worker(tenants=tenants, without_tenants=["beta"], until_idle=True)


@pytest.fixture
def ended_hosts(monkeypatch: pytest.MonkeyPatch) -> list[TenantHost]:
    """The hosts that came as far as to run; they end at once."""
    hosts: list[TenantHost] = []

    async def run(host: TenantHost) -> int:
        hosts.append(host)
        return 0

    monkeypatch.setattr(TenantHost, "run", run)
    return hosts


@pytest.mark.parametrize("declares", [False, True])
def test_a_host_starts_during_an_outage_whatever_its_code_declares(
    declares: bool, ended_hosts: list[TenantHost]
) -> None:
    app = Freehold("postgresql://127.0.0.1:1/none")
    if declares:
        app.tenant("acme").schedule("sync", Every(hours=1), NewJob(task="t"))
    assert app.run_worker(tenants="all") == 0
    assert len(ended_hosts) == 1
    app.close()


def test_a_declared_tenant_on_an_unknown_shard_ends_no_host_and_holds_up_no_other(
    app: Freehold,
    urls: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    ended_hosts: list[TenantHost],
) -> None:
    app.tenants.create("acme", EAST)
    app.tenants.create("beta")
    monkeypatch.delenv("FREEHOLD_SHARD_EAST")
    here = Freehold(urls[HOME_SHARD])
    for name in ("acme", "beta"):
        here.tenant(name).schedule("sync", Every(hours=1), NewJob(task="t"))
    assert here.run_worker(tenants="all") == 0
    assert len(ended_hosts) == 1
    here.close()
    assert [each.name for each in app.tenant("beta").operator.schedules()] == ["sync"]
