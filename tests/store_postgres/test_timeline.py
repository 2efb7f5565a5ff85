"""A standby that is promoted without the latest commits gives no id and no token again.

One promotion serves all tests. Each is the first to draw in its schema, or makes the schema forget
that its numbers have moved on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

import psycopg
import pytest

from freehold.errors import StoreReadOnly
from freehold.lab.devpostgres import DevPostgres
from freehold.model.job import NewJob
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.waiting import Waiting
from freehold.store.database import SessionOptions
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.postgres.sequences import GAP
from freehold.store.store import AsyncStore, Store
from freehold.store.types import AttemptEnd, ClaimRequest, QueueDemand
from tests.chaos.standby import start_standby
from tests.concurrency import run_concurrently, wait_until
from tests.store_postgres.changing_pooler import ChangingPooler

SCHEMAS = ("pipelined", "plain", "pipelined_t_acme", "claims", "pooled", "early", "shared")
LOST = 5
SETTINGS: dict[str, str | int] = {"fsync": "off"}
REQUEST = ClaimRequest(owner="me", lease_seconds=300.0, demands=(QueueDemand("default", 1),))


class Given(NamedTuple):
    """The largest numbers that were given before the promotion."""

    id: int
    token: int
    event: int


class Promoted(NamedTuple):
    server: DevPostgres
    given: dict[str, Given]
    #: Opened before the promotion, with a client of the schema `pooled`.
    pooler: ChangingPooler
    pooled: PostgresDatabase
    #: Connected to the standby before its promotion.
    early: PostgresDatabase


def draw(database: PostgresDatabase) -> Given:
    """Enqueues, claims and fails a job."""
    store = Store(database.session())
    (stored,) = store.enqueue([NewJob(task="t", max_attempts=1)])
    (attempt,) = store.claim(REQUEST)
    store.finish("me", [AttemptEnd(attempt, Outcome(kind=OutcomeKind.FAIL))])
    (event,) = store.events(stored.id)[-1:]
    return Given(stored.id, attempt.token, event.id)


@pytest.fixture(scope="module")
def promoted() -> Iterator[Promoted]:
    with DevPostgres(settings=SETTINGS) as primary:
        for schema in SCHEMAS:
            with closing(PostgresDatabase(primary.url, schema)) as database:
                database.migrate()
                Store(database.session()).enqueue([NewJob(task="t", queue="left")])
                draw(database)
        standby = start_standby(primary, SETTINGS)
        with (
            closing(standby),
            ChangingPooler(primary.url) as pooler,
            closing(PostgresDatabase(pooler.url, "pooled")) as pooled,
            closing(PostgresDatabase(standby.url, "early")) as early,
        ):
            with pytest.raises(StoreReadOnly):
                draw(early)
            _let_lag(primary, standby)
            given = {schema: _lost(primary, schema) for schema in SCHEMAS}
            given["pooled"] = draw(pooled)
            Store(early.session()).queues()
            primary.stop("immediate")
            with psycopg.connect(standby.url, autocommit=True) as admin:
                assert admin.execute("select pg_promote(true, 60)").fetchone() == (True,)
            pooler.change_to(standby.url)
            yield Promoted(standby, given, pooler, pooled, early)


def _let_lag(primary: DevPostgres, standby: DevPostgres) -> None:
    """The standby receives nothing more, and no commit waits for it."""
    with psycopg.connect(standby.url, autocommit=True) as admin:
        admin.execute("alter system set primary_conninfo = ''")
        admin.execute("select pg_reload_conf()")
        receivers = "select count(*) from pg_stat_wal_receiver"
        wait_until(lambda: admin.execute(receivers).fetchone() == (0,), "the receiver has ended")
    with psycopg.connect(primary.url, autocommit=True) as admin:
        admin.execute("alter system set synchronous_standby_names = ''")
        admin.execute("select pg_reload_conf()")


def _lost(primary: DevPostgres, schema: str) -> Given:
    with closing(PostgresDatabase(primary.url, schema)) as database:
        for _ in range(LOST):
            given = draw(database)
    return given


class Open:
    """Opens schemas of the promoted server, and closes all at the end."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.opened: list[PostgresDatabase] = []

    def __call__(self, schema: str) -> PostgresDatabase:
        options = SessionOptions("plain" if schema == "plain" else "pipelined")
        self.opened.append(PostgresDatabase(self._url, schema, options=options))
        return self.opened[-1]


@pytest.fixture
def database(promoted: Promoted) -> Iterator[Open]:
    databases = Open(promoted.server.url)
    yield databases
    for each in databases.opened:
        each.close()


@pytest.fixture
def last(promoted: Promoted) -> int:
    """The last id of the schema `shared`, which is as it was before the promotion."""
    with psycopg.connect(promoted.server.url, autocommit=True) as admin:
        admin.execute("select setval('shared.server_timeline', 1)")
        (last,) = admin.execute("select last_value from shared.job_id").fetchone() or (0,)
    return int(last)


@pytest.mark.requirement("S0.6")
@pytest.mark.parametrize("schema", ["pipelined", "plain", "pipelined_t_acme"])
def test_a_new_primary_gives_no_number_again(
    promoted: Promoted, database: Open, schema: str
) -> None:
    first, second = draw(database(schema)), draw(database(schema))
    assert all(new > old for new, old in zip(first, promoted.given[schema], strict=True))
    assert second.id == first.id + 1  # it moves on once


def test_an_awaited_claim_is_checked_too(promoted: Promoted, database: Open, last: int) -> None:
    async def scenario() -> tuple[int, int]:
        store = AsyncStore(database("shared").async_session())
        (stored,) = await store.enqueue([NewJob(task="t")])
        (attempt,) = await store.claim(REQUEST)
        await database("shared").aclose()
        return stored.id, attempt.token

    job_id, token = asyncio.run(scenario())
    assert job_id > last + GAP
    assert token > promoted.given["shared"].token


def test_a_claim_that_comes_first_gets_a_larger_token(promoted: Promoted, database: Open) -> None:
    store = Store(database("claims").session())
    request = ClaimRequest(owner="me", lease_seconds=300.0, demands=(QueueDemand("left", 1),))
    (attempt,) = store.claim(request)
    assert attempt.token > promoted.given["claims"].token


def test_clients_that_come_at_once_wait_for_the_one_that_moves_the_numbers(
    database: Open, last: int
) -> None:
    clients = [database("shared") for _ in range(8)]
    stores = [Store(client.session()) for client in clients]
    enqueues = [partial(store.enqueue, [NewJob(task="t")]) for store in stores]
    ids = [stored.id for (stored,) in run_concurrently(enqueues)]
    assert min(ids) > last + GAP
    assert max(ids) - min(ids) == len(clients) - 1


@pytest.mark.parametrize(
    "job",
    [
        NewJob(task="t"),
        NewJob(task="t", unique_key="k"),
        NewJob(task="t", waiting=Waiting(key="k")),
        NewJob(task="t", run_at=datetime(2100, 1, 1, tzinfo=UTC)),
    ],
    ids=["plain", "unique", "waiting", "scheduled"],
)
def test_a_callers_connection_is_checked_with_each_number(
    promoted: Promoted, database: Open, last: int, job: NewJob
) -> None:
    with psycopg.connect(promoted.server.url) as connection:
        store = Store(database("shared").caller_session(connection))
        ids = [each.id for each in store.enqueue([job, NewJob(task="t")])]
    assert min(ids) > last + GAP


@pytest.mark.parametrize("arguments", ["", ", debounce_key => 'k', debounce_seconds => 9"])
def test_the_function_enqueue_is_checked(promoted: Promoted, last: int, arguments: str) -> None:
    with psycopg.connect(promoted.server.url) as connection:
        row = connection.execute(f"select id from shared.enqueue('t'{arguments})".encode())
        (job_id,) = row.fetchone() or (0,)
    assert job_id > last + GAP


def test_no_function_of_the_schema_draws_unchecked(promoted: Promoted) -> None:
    with psycopg.connect(promoted.server.url) as connection:
        rows = connection.execute(
            "select proname from pg_proc where pronamespace = 'plain'::regnamespace "
            "and prosrc ~ 'nextval' order by 1"
        ).fetchall()
    assert [name for (name,) in rows] == ["advance_sequences", "next_number"]


def test_a_handlers_transaction_is_checked(database: Open, last: int) -> None:
    transaction = database("shared").transaction()
    transaction.begin()
    (stored,) = Store(transaction.session).enqueue([NewJob(task="t")])
    transaction.commit()
    assert stored.id > last + GAP


def test_an_awaited_transaction_of_a_handler_is_checked_and_holds_up_no_other(
    database: Open, last: int
) -> None:
    async def scenario() -> None:
        transaction = database("shared").async_transaction()
        await transaction.begin()
        (inside,) = await AsyncStore(transaction.session).enqueue([NewJob(task="t")])
        (beside,) = await AsyncStore(database("shared").async_session()).enqueue([NewJob(task="t")])
        assert last + GAP < inside.id < beside.id
        await transaction.rollback()
        for each in database.opened:
            await each.aclose()

    asyncio.run(scenario())


def test_a_pooled_client_that_stayed_connected_is_checked(promoted: Promoted) -> None:
    (connection,) = promoted.pooled._pool._idle
    assert connection.checked_schemas == set()
    assert all(
        new > old for new, old in zip(draw(promoted.pooled), promoted.given["pooled"], strict=True)
    )
    assert promoted.pooled._pool._idle == [connection]


def test_a_connection_from_before_the_promotion_is_checked_at_its_first_write(
    promoted: Promoted,
) -> None:
    (connection,) = promoted.early._pool._idle
    assert draw(promoted.early).id > promoted.given["early"].id
    assert promoted.early._pool._idle == [connection]


def test_a_direct_connection_is_checked_once(database: Open) -> None:
    client = database("plain")
    draw(client)
    (connection,) = client._pool._idle
    assert connection.checked_schemas == {"plain"}
