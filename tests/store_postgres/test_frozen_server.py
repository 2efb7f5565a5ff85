"""A frozen server holds no caller for longer than the time limit of an answer.

Its kernel still accepts connections and acknowledges every packet, so that neither keepalives nor
`tcp_user_timeout` find it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from freehold import Context, Freehold, Retry
from freehold.errors import OutcomeUnknown, StoreError, StoreUnavailable
from freehold.lab.devpostgres import DevPostgres
from freehold.model.job import Attempt, NewJob
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.database import SessionOptions
from freehold.store.postgres import listener
from freehold.store.postgres.async_pool import AsyncPool
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.postgres.errors import NoAnswer
from freehold.store.postgres.pool import ConnectionRecipe, Pool
from freehold.store.store import AsyncStore, Store
from freehold.store.types import AttemptEnd, ClaimRequest, LeaseKey, QueueDemand
from tests.concurrency import wait_until
from tests.frozen_server import frozen

WAIT_SECONDS = 120.0
REQUEST = ClaimRequest(owner="me", lease_seconds=300.0, demands=(QueueDemand("frozen", 1),))


@pytest.fixture(scope="module")
def server() -> Iterator[DevPostgres]:
    with DevPostgres() as server:
        with contextlib.closing(PostgresDatabase(server.url)) as database:
            database.migrate()
        yield server


@pytest.fixture(params=["pipelined", "plain"])
def database(server: DevPostgres, request: pytest.FixtureRequest) -> Iterator[PostgresDatabase]:
    options = SessionOptions(request.param, WAIT_SECONDS)
    with contextlib.closing(PostgresDatabase(server.url, options=options)) as database:
        yield database


@contextlib.contextmanager
def silent(server: DevPostgres, pool: Pool | AsyncPool, error: type[StoreError]) -> Iterator[None]:
    """Frozen, and the open connections wait for a moment only. Later ones are patient again, so
    that a slow machine fails no other statement."""
    assert pool._idle
    for connection in pool._idle:
        connection.answer_seconds = 0.1
    with frozen(server), pytest.raises(error, match="did not answer within"):
        yield


def claimed(store: Store) -> Attempt:
    store.enqueue([NewJob(task="frozen", queue="frozen")])
    (attempt,) = store.claim(REQUEST)
    return attempt


def success(attempt: Attempt) -> AttemptEnd:
    return AttemptEnd(attempt, Outcome(kind=OutcomeKind.SUCCESS, result=b"1"))


def test_a_frozen_server_holds_no_thread(server: DevPostgres, database: PostgresDatabase) -> None:
    store = Store(database.session())
    attempt = claimed(store)
    key = LeaseKey(attempt.job_id, attempt.token)
    calls: list[tuple[type[StoreError], Callable[[], object]]] = [
        (OutcomeUnknown, lambda: store.enqueue([NewJob(task="other")])),
        (OutcomeUnknown, lambda: store.enqueue([NewJob(task="other"), NewJob(task="another")])),
        (OutcomeUnknown, lambda: store.claim(REQUEST)),
        (OutcomeUnknown, lambda: store.renew("me", [key], 300.0)),
        (OutcomeUnknown, lambda: store.finish("me", [success(attempt)])),
        (StoreUnavailable, lambda: store.queues()),
    ]
    for error, call in calls:
        store.queues()  # opens the connection that will be used
        with silent(server, database._pool, error):
            call()
    assert store.queues()


def test_a_frozen_server_holds_no_coroutine(
    server: DevPostgres, database: PostgresDatabase
) -> None:
    attempt = claimed(Store(database.session()))
    key = LeaseKey(attempt.job_id, attempt.token)

    async def scenario() -> None:
        store = AsyncStore(database.async_session())
        await store.enqueue([NewJob(task="other")])
        for error, call in (
            (OutcomeUnknown, lambda: store.enqueue([NewJob(task="other")])),
            (OutcomeUnknown, lambda: store.claim(REQUEST)),
            (OutcomeUnknown, lambda: store.renew("me", [key], 300.0)),
            (OutcomeUnknown, lambda: store.finish("me", [success(attempt)])),
            (StoreUnavailable, lambda: store.queues()),
        ):
            await store.queues()
            with silent(server, database._connections.pool_of_loop(), error):
                await call()
        await asyncio.gather(*(store.queues() for _ in range(3)))
        await database.aclose()

    asyncio.run(scenario())


def hosts_of(pool: Pool | AsyncPool) -> list[str]:
    """In the order in which the next connection tries them."""
    return str(conninfo_to_dict(pool._recipe.info)["host"]).split(",")


def test_a_frozen_host_of_a_list_is_tried_last(server: DevPostgres) -> None:
    """Otherwise each new connection would wait for it: here for psycopg's longest, two minutes."""
    with DevPostgres() as other:
        hosts = [conninfo_to_dict(each.url) for each in (server, other)]
        lists = {name: ",".join(str(each[name]) for each in hosts) for name in ("host", "port")}
        url = make_conninfo(user="postgres", dbname="postgres", connect_timeout=0, **lists)
        first, second = (str(each["host"]) for each in hosts)
        pool = Pool(url, 4)
        connection = pool.acquire()
        assert connection.info.host == first
        with frozen(server):
            exchange = connection.group_pipeline.exchange([(b"select 1", [])])
            with pytest.raises(NoAnswer) as unanswered:
                connection.run_exchange(exchange, 0.1)
            pool.release_after(unanswered.value, connection, writes=False)
            assert hosts_of(pool) == [second, first]
            connection = pool.acquire()
            assert connection.info.host == second
        pool.release(connection)
        pool.close()

        async def scenario() -> None:
            pool = AsyncPool(url, 4)
            connection = await pool.acquire()
            assert connection.info.host == first
            with frozen(server):
                exchange = connection.group_pipeline.exchange([(b"select 1", [])])
                with pytest.raises(NoAnswer) as unanswered:
                    await connection.run_exchange(exchange, 0.1)
                pool.release_after(unanswered.value, connection, writes=False)
                assert hosts_of(pool) == [second, first]
                connection = await pool.acquire()
                assert connection.info.host == second
            pool.release(connection)
            pool.close()

        asyncio.run(scenario())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"host": "a,b,c", "port": "1,2,3"}, ("a,c,b", "1,3,2")),
        ({"host": "a,b,c", "port": "2"}, ("a,c,b", "2,2,2")),
        ({"host": "b,b,b", "port": "2,1,3"}, ("b,b,b", "1,3,2")),
        ({"host": "a,c", "port": "2,2"}, ("a,c", "2,2")),
        ({"host": "b", "port": "2"}, ("b", "2")),
    ],
)
def test_where_the_frozen_host_stands(given: dict[str, str], expected: tuple[str, str]) -> None:
    recipe = ConnectionRecipe(make_conninfo(dbname="d", **given), internal=True)
    recipe.try_last(("b", 2))
    found = conninfo_to_dict(recipe.info)
    assert (found["host"], found["port"]) == expected


def test_a_statement_that_was_given_up_does_not_wait_on_the_server(
    server: DevPostgres, database: PostgresDatabase
) -> None:
    store = Store(database.session())
    store.queues()
    with psycopg.connect(server.url) as admin:
        admin.execute("lock table freehold.job in access exclusive mode")
        for connection in database._pool._idle:
            connection.answer_seconds = 0.1
        with pytest.raises(OutcomeUnknown, match="did not answer within"):
            store.enqueue([NewJob(task="other")])
        waiting = "select count(*) from pg_locks where not granted"
        wait_until(
            lambda: admin.execute(waiting).fetchone() == (0,), "no backend waits for the lock"
        )


def test_the_listener_notices_a_frozen_server(
    server: DevPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "PROBE_TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr(listener, "_SILENCE_SECONDS", 0.1)

    async def scenario() -> None:
        heard: asyncio.Queue[str | None] = asyncio.Queue()
        with contextlib.closing(PostgresDatabase(server.url)) as database:
            listening = asyncio.create_task(database.listen(heard.put_nowait))
            assert await heard.get() == ""
            with frozen(server):
                async with asyncio.timeout(WAIT_SECONDS):
                    while await heard.get() is not None:
                        pass
            async with asyncio.timeout(WAIT_SECONDS):
                while await heard.get() is None:
                    pass
            listening.cancel()
            await asyncio.wait([listening])

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", ["coroutine", "function"])
def test_an_open_transaction_on_a_frozen_server_ends_as_a_lost_lease(
    server: DevPostgres,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: str,
) -> None:
    monkeypatch.setenv("FREEHOLD_STORE_ANSWER_SECONDS", "5")
    app = Freehold(server.url)
    inside, thaw = threading.Event(), threading.Event()
    lost: list[str] = []

    once = Retry(max_attempts=1)  # a second attempt would never end

    def ended(ctx: Context) -> None:
        lost.append(str(ctx.stop_reason))
        thaw.set()

    @app.task(name="coroutine", queue="coroutine", retry=once)
    async def book(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute("select 1")
            inside.set()
            try:
                while True:
                    await connection.execute("select pg_sleep(0.01)")
            finally:
                ended(ctx)

    @app.task(name="function", queue="function", retry=once)
    def book_in_a_thread(ctx: Context) -> None:
        with ctx.transaction() as connection:
            connection.execute("select 1")
            inside.set()
            try:
                while True:
                    connection.execute("select pg_sleep(0.01)")
            finally:
                ended(ctx)

    def freeze() -> None:
        assert inside.wait(WAIT_SECONDS)
        with frozen(server):
            assert thaw.wait(WAIT_SECONDS)

    freezer = threading.Thread(target=freeze)
    freezer.start()
    job = (book if kind == "coroutine" else book_in_a_thread).enqueue()
    code = app.run_worker(until_idle=True, lease_timeout_seconds=3.0, queues=[kind])
    freezer.join()
    assert (code, lost) == (0, ["lease_lost"])  # 75 would be a worker with a stuck handler
    assert job.read().state in ("assigned", "running", "failed")  # failed: its lease has expired
    assert "ignores its stop" not in caplog.text
    app.close()
