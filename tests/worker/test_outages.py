"""While the store is away a worker logs a line a minute, asks ever more rarely, and keeps going."""

from __future__ import annotations

import asyncio
import logging
import uuid
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from freehold import Freehold
from freehold.errors import StoreDenied, StoreUnavailable
from freehold.lab.devpostgres import DevPostgres
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.sqlite.database import SqliteDatabase
from freehold.store_health import GrowingWait
from freehold.telemetry import Telemetry
from freehold.testing import VirtualLoop, virtual_worker
from freehold.worker.config import WorkerSettings
from freehold.worker.worker import Worker
from tests.store_sqlite.test_file_errors import limit_pages
from tests.testing.virtual_app import VirtualApp
from tests.worker import fleet_app
from tests.worker.fleet import Fleet, eventually

OUTAGE_SECONDS = 600.0
_AWAY = "the store is away"
_BACK = "the store is back"


class EveryStatement(set[str]):
    def __contains__(self, name: object) -> bool:
        return True


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        each.getMessage()
        for each in caplog.records
        if each.name == "freehold" and each.levelno >= logging.WARNING
    ]


@pytest.mark.requirement("S3.8")
def test_an_outage_costs_one_line_a_minute_and_its_end_is_logged_and_noticed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = VirtualApp()
    begun = asyncio.Event()

    @app.app.task(name="job")
    async def job(seconds: float) -> None:
        begun.set()
        await asyncio.sleep(seconds)

    async def scenario() -> None:
        async with app.working(concurrency=5, lease_timeout_seconds=30.0):
            running = job.enqueue(OUTAGE_SECONDS).id
            await begun.wait()
            app.database.refused, began = EveryStatement(), len(app.database.seen)
            for number in range(int(OUTAGE_SECONDS)):
                if number % 10 == 0:  # each of them wakes the claimer and the sweeper
                    job.using(delay=3600.0).enqueue(0.0)
                await asyncio.sleep(1.0)
            # Of each of four parts: some 40 until it waits for ten seconds, then every ten seconds.
            assert len(app.database.seen) - began < 4 * OUTAGE_SECONDS / 10.0 + 4 * 40
            app.database.refused = set()
            waiting = job.enqueue(0.0).id
            await app.until(lambda: app.state(waiting) == "succeeded", within=13.0)
            await app.until(lambda: app.state(running) != "running", within=13.0)

    with caplog.at_level(logging.INFO, "freehold"):
        app.run(scenario())
    found = lines(caplog)
    about_store = [line for line in found if "the store" in line]
    assert about_store[0].startswith(f"{_AWAY}, trying again: ")
    assert all(line.startswith(f"{_AWAY} for ") for line in about_store[1:-1])
    assert OUTAGE_SECONDS / 75 <= len(about_store) <= 2 + OUTAGE_SECONDS / 60
    assert about_store[-1].startswith(f"{_BACK} after 60")
    # The lease of the running job was lost, which concerns that job, and the rest is silence.
    assert len(found) - len(about_store) <= 2, found


def test_what_a_try_takes_is_part_of_the_wait() -> None:
    """A frozen host of a list costs each try three seconds."""

    async def scenario() -> None:
        wait = GrowingWait()
        for took_seconds, longest in ((0.0, 12.5), (8.0, 2.5), (20.0, 0.625), (0.0, 12.5)):
            for _ in range(60):  # until it waits for ten seconds, with a quarter more or less
                await asyncio.sleep(wait.next(0.5))
            await asyncio.sleep(took_seconds)
            assert 0.75 * longest / 1.25 <= wait.next(0.5) <= longest

    VirtualApp().run(scenario())


@pytest.mark.requirement("S3.8")
def test_an_idle_worker_notices_the_end_of_an_outage(caplog: pytest.LogCaptureFixture) -> None:
    """With no ready queue the claimer reads the list of queues, and claims nothing."""
    app = VirtualApp()

    async def scenario() -> None:
        async with app.working():
            for _ in range(2):
                await asyncio.sleep(300.0)
                app.database.refused = EveryStatement()
                await asyncio.sleep(60.0)
                app.database.refused = set()
            await asyncio.sleep(15.0)
            assert lines(caplog)[-1].startswith(f"{_BACK} after ")

    with caplog.at_level(logging.INFO, "freehold"):
        app.run(scenario())
    ends = [line for line in lines(caplog) if line.startswith(_BACK)]
    assert len(ends) == 2


def test_an_error_of_the_list_of_queues_is_logged_and_known_queues_are_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = VirtualApp()

    @app.app.task(name="job")
    async def job() -> None: ...

    async def scenario() -> None:
        async with app.working():
            job_id = job.enqueue().id
            await app.until(lambda: app.state(job_id) == "succeeded", within=1.0)
            job_id = job.enqueue().id
            app.database.refused = {"ready_queues"}
            await app.until(lambda: app.state(job_id) == "succeeded", within=15.0)
            assert app.telemetry.total("store_errors", "claimer") > 0

    with caplog.at_level(logging.INFO, "freehold"):
        app.run(scenario())
    assert lines(caplog)[0].startswith(f"{_AWAY}, trying again: ready_queues")


def test_a_lease_that_can_still_be_renewed_at_its_end_is_not_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A silence of minutes would lose leases: renewals become more frequent before their end."""
    app = VirtualApp()

    @app.app.task(name="job")
    async def job() -> str:
        await asyncio.sleep(60.0)
        return "kept"

    async def scenario() -> None:
        async with app.working(concurrency=1, lease_timeout_seconds=30.0):
            job_id = job.enqueue().id
            await app.until(lambda: len(app.database.times("renew")) == 1, within=30.0)
            app.database.refused = EveryStatement()
            # The lease is given up 1.5 s before its end.
            await asyncio.sleep(30.0 - 1.5 - 1.2)
            app.database.refused = set()
            await app.until(lambda: app.state(job_id) == "succeeded", within=60.0)
            assert app.events(job_id) == []

    with caplog.at_level(logging.INFO, "freehold"):
        app.run(scenario())
    assert not [line for line in lines(caplog) if "lost" in line]


def test_after_a_renewal_works_again_stop_requests_are_read_at_once() -> None:
    """The renewer's other statements rest during an outage, for ten seconds in the end."""
    app = VirtualApp()
    begun = asyncio.Event()

    @app.app.task(name="job")
    async def job() -> None:
        begun.set()
        await asyncio.sleep(60.0)

    async def scenario() -> None:
        async with app.working(lease_timeout_seconds=40.0):
            job.enqueue()
            await begun.wait()
            # Only the renewer fails: no other part notices the end before it does.
            app.database.refused = {"renew", "heartbeat", "mark_running", "stop_requests"}
            await asyncio.sleep(34.0)
            app.database.refused = set()
            app.database.seen.clear()
            await app.until(lambda: bool(app.database.times("renew")), within=2.0)
            await app.until(lambda: bool(app.database.times("stop_requests")), within=0.5)

    app.run(scenario())


def test_wake_ups_do_not_shorten_the_wait_after_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """On a full disk every failed sweep used to be followed by the next within 50 ms."""
    clock = VirtualApp().clock
    # In memory: a thread that writes to a file would not keep to the virtual time.
    database = SqliteDatabase(None, lambda: clock.micros)
    app, telemetry = Freehold(), Telemetry()

    @app.task(name="t")
    async def job() -> None: ...

    async def scenario() -> None:
        worker = virtual_worker(
            database, app.tasks, WorkerSettings(), chance=lambda: 0.5, telemetry=telemetry
        )
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(1.0)
        with database._engine.transaction() as connection:
            connection.execute(_FULL_OF_DUE_JOBS)
        limit_pages(database, 1)
        for _ in range(200):
            worker._wakeups.sweep.set()
            worker._wakeups.jobs_ready()
            await asyncio.sleep(0.1)
        assert 0 < telemetry.total("store_errors", "sweeper") <= 14
        limit_pages(database, 1_000_000)
        await asyncio.sleep(10.0)
        worker.drain()
        await running

    with (
        caplog.at_level(logging.INFO, "freehold"),
        asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner,
    ):
        runner.run(scenario())
    database.close()
    found = [line for line in lines(caplog) if line.startswith("the store")]
    assert [line.partition(",")[0].partition(" after")[0] for line in found] == [_AWAY, _BACK]
    assert "no space left" in found[0]


_FULL_OF_DUE_JOBS = """
with recursive many(n) as (select 1 union all select n + 1 from many where n < 2000)
insert into job (id, created_at, run_at, stage, priority, max_attempts, queue, task, args, policy)
select n, 1, 2, 'w', 0, 1, 'default', 't', cast('{}' || printf('%1000s', ' ') as blob), '{}'
from many
"""


# -- real servers ----------------------------------------------------------------------------


@pytest.mark.requirement("S3.8")
def test_a_worker_is_quiet_while_its_server_is_stopped_and_ends_at_start_if_it_is_refused(
    own_server: tuple[Fleet, DevPostgres],
) -> None:
    fleet, server = own_server
    worker = fleet.start(lease=2.0)
    fleet.succeeded(fleet_app.quick.enqueue("before").id)
    server.stop("immediate")
    eventually(lambda: _AWAY in worker.log)
    server.start()
    fleet.succeeded(fleet_app.quick.enqueue("after").id)
    eventually(lambda: _BACK in worker.log)
    assert worker.drain() == 0
    about = [line for line in worker.log.splitlines() if "warning" in line.lower()]
    assert [(_AWAY in line, _BACK in line) for line in about] == [(True, False), (False, True)]

    # Later on the same server, because a server takes a second to start.
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute("create role locked login password 'right'")
    access = server.data / "pg_hba.conf"
    access.write_text("local all locked scram-sha-256\n" + access.read_text())
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute("select pg_reload_conf()")
    url = make_conninfo(server.url, user="locked", password="wrong")
    address = f"{server.url.replace('user=postgres', 'user=locked')}&password=wrong"
    eventually(lambda: _is_refused(url))
    refused = fleet.start(environment={"FREEHOLD_URL": address})
    assert refused.ended() == 3
    assert "password authentication failed" in refused.log
    assert "wrong" not in refused.log.replace("password authentication failed", "")

    # The server has accepted the password: other connections may end, so that a worker waits.
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute("alter role locked connection limit 0")
    with (
        closing(PostgresDatabase(address.replace("wrong", "right"))) as full,
        pytest.raises(StoreUnavailable, match="too many connections") as raised,
    ):
        full.pending()
    assert not isinstance(raised.value, StoreDenied)


def _is_refused(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError as error:
        return "password authentication failed" in str(error)
    return False


def test_a_worker_without_the_rights_of_one_ends_at_start(postgres_fleet: Fleet) -> None:
    fleet = postgres_fleet
    role = f"nobody_{uuid.uuid4().hex}"
    fleet.sql(f"create role {role} login")
    try:
        worker = fleet.start(environment={"FREEHOLD_URL": _as(fleet.url, role)})
        assert worker.ended() == 3
        assert "may not do this" in worker.log
    finally:
        fleet.sql(f"drop role {role}")


def _as(url: str, role: str) -> str:
    assert "user=postgres" in url
    return url.replace("user=postgres", f"user={role}")


@pytest.mark.parametrize("configured", ["[queues.mail]\nweight = 2.0", "[limits.api]\nmax = 3"])
def test_a_worker_starts_during_an_outage_whatever_is_configured(
    configured: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the settings say is written as soon as the store can be reached."""
    started: list[Worker] = []

    async def run(worker: Worker) -> int:
        started.append(worker)
        return 0

    monkeypatch.setattr(Worker, "run", run)
    monkeypatch.chdir(tmp_path)
    Path("freehold.toml").write_text(configured)
    app = Freehold("postgresql://127.0.0.1:1/none")
    assert app.run_worker() == 0
    assert len(started) == 1
    app.close()
