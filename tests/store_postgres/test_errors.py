"""Errors of the database: each names what happened and what to do, and no secrets."""

from __future__ import annotations

import asyncio
import os
import socket
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from freehold.errors import (
    BadSettings,
    FreeholdError,
    OutcomeUnknown,
    SchemaMissing,
    StoreReadOnly,
    StoreUnavailable,
)
from freehold.model.job import NewJob
from freehold.store.database import check_migrated
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.store import AsyncStore, Store
from tests.concurrency import wait_until
from tests.store_postgres.conftest import Connect

SECRET = "hunter2"
JOB = NewJob(task="t")
OURS = "from pg_stat_activity where application_name = 'freehold' and datname = current_database()"


@pytest.fixture
def database(postgres_url: str) -> Iterator[PostgresDatabase]:
    """Not shared: these tests break it."""
    database = PostgresDatabase(postgres_url)
    database.migrate()
    yield database
    database.close()


@pytest.fixture
def admin(postgres_url: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Bound, so that no other process takes it, but not listened on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.requirement("S2.1")
def test_a_server_that_is_down_is_named_at_once_and_its_password_is_not(closed_port: int) -> None:
    database = PostgresDatabase(f"postgresql://me:{SECRET}@127.0.0.1:{closed_port}/jobs")
    begun = time.monotonic()
    with pytest.raises(StoreUnavailable, match=f"me@127.0.0.1:{closed_port}/jobs") as caught:
        Store(database.session()).enqueue([JOB])
    with pytest.raises(StoreUnavailable, match=f"me@127.0.0.1:{closed_port}/jobs") as awaited:
        asyncio.run(AsyncStore(database.async_session()).enqueue([JOB]))
    assert time.monotonic() - begun < 60
    for error in (caught.value, awaited.value):
        assert SECRET not in full_text(error)
    assert SECRET not in database.shown


def full_text(error: BaseException) -> str:
    """The error with its causes, as a log prints it."""
    texts = []
    cause: BaseException | None = error
    while cause is not None:
        texts.append(repr(cause) + str(cause))
        cause = cause.__cause__
    return "\n".join(texts)


@pytest.mark.requirement("S2.1")
@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@127.0.0.1:port/jobs",
        f"postgresql://me:{SECRET}@127.0.0.1/jobs?nonsense=1",
        f"postgresql://127.0.0.1/jobs?password={SECRET}&nonsense=1",
        f"postgresql://me:{SECRET}@[::1/jobs",
        f"postgresql://me:{SECRET}%zz@127.0.0.1/jobs",
    ],
)
def test_an_invalid_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises((BadSettings, StoreUnavailable)) as caught:
        Store(PostgresDatabase(url).session()).enqueue([JOB])
    assert SECRET not in full_text(caught.value)


@pytest.mark.requirement("S2.1")
def test_no_message_contains_the_password(postgres_url: str, admin: Connection[Any]) -> None:
    address, _, options = postgres_url.partition("?")
    url = f"{address}?{options}&password={SECRET}"
    database = PostgresDatabase(url)
    store = Store(database.session())
    texts = [database.shown]
    with pytest.raises(SchemaMissing) as missing:
        store.enqueue([JOB])
    texts.append(full_text(missing.value))
    with pytest.raises(SchemaMissing) as checked:
        check_migrated(database)
    texts.append(full_text(checked.value))
    texts += [f"{each.name} {each.detail}" for each in database.diagnose()]
    database.close()
    assert SECRET not in "\n".join(texts)


@pytest.mark.requirement("S2.1")
def test_a_missing_schema_is_reported_with_the_command_to_run(postgres_url: str) -> None:
    database = PostgresDatabase(postgres_url)
    store = Store(database.session())
    for call in (lambda: store.enqueue([JOB]), store.counts, lambda: check_migrated(database)):
        with pytest.raises(SchemaMissing, match="run `freehold migrate`"):
            call()
    database.close()


@pytest.mark.requirement("S2.1")
def test_a_connection_cut_during_a_write_leaves_the_outcome_unknown(
    queue: Store, connect: Connect, admin: Connection[Any]
) -> None:
    job_id = queue.enqueue([JOB])[0].id
    blocker = connect()
    blocker.execute("select from freehold.job for update")
    with ThreadPoolExecutor(1) as pool:
        deletion = pool.submit(queue.delete, [job_id])
        waiting = f"select pid {OURS} and wait_event_type = 'Lock'"
        wait_until(lambda: admin.execute(waiting.encode()).fetchone() is not None, "it waits")
        admin.execute(f"select pg_terminate_backend(pid) from ({waiting}) w".encode())
        with pytest.raises(OutcomeUnknown, match=r"may or may not have happened.*idempotency key"):
            deletion.result()
    blocker.rollback()
    assert queue.delete([job_id]) == [job_id]


@pytest.mark.requirement("S2.1")
def test_a_connection_cut_during_a_read_makes_the_store_unavailable(
    queue: Store, connect: Connect, admin: Connection[Any]
) -> None:
    job_id = queue.enqueue([JOB])[0].id
    blocker = connect()
    blocker.execute("lock table freehold.job in access exclusive mode")
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(queue.read, [job_id])
        waiting = f"select pid {OURS} and wait_event_type = 'Lock'"
        wait_until(lambda: admin.execute(waiting.encode()).fetchone() is not None, "it waits")
        admin.execute(f"select pg_terminate_backend(pid) from ({waiting}) w".encode())
        with pytest.raises(StoreUnavailable, match="connection broke"):
            reading.result()
    blocker.rollback()
    assert set(queue.read([job_id])) == {job_id}


@pytest.mark.requirement("S2.11")
def test_connections_cut_while_idle_cause_no_error(queue: Store, admin: Connection[Any]) -> None:
    queue.enqueue([JOB])
    cut_all(admin)
    assert queue.enqueue([JOB])[0].created


@pytest.mark.requirement("S2.11")
def test_asyncio_connections_cut_while_idle_cause_no_error(
    database: PostgresDatabase, admin: Connection[Any]
) -> None:
    async def enqueue_twice() -> bool:
        store = AsyncStore(database.async_session())
        await store.enqueue([JOB])
        await asyncio.to_thread(cut_all, admin)
        created = (await store.enqueue([JOB]))[0].created
        await database.aclose()
        return created

    assert asyncio.run(enqueue_twice())


def cut_all(admin: Connection[Any]) -> None:
    rows = admin.execute(f"select pid, pg_terminate_backend(pid) {OURS}".encode()).fetchall()
    assert rows
    wait_until(lambda: not any(is_alive(pid) for pid, _ in rows), "the backends are gone")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@pytest.mark.requirement("S2.11")
def test_a_database_that_takes_no_writes_is_read_and_recovers_without_a_restart(
    postgres_url: str, queue: Store, admin: Connection[Any]
) -> None:
    name = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
    queue.enqueue([JOB])
    admin.execute(f"alter database {name} set default_transaction_read_only = on".encode())
    cut_all(admin)
    for _ in range(2):
        with pytest.raises(StoreReadOnly, match="takes no writes"):
            queue.enqueue([JOB])
    assert queue.counts().ready == 1
    cut_all(admin)
    admin.execute(f"alter database {name} reset default_transaction_read_only".encode())
    assert queue.enqueue([JOB])[0].created


@pytest.mark.requirement("S2.1")
def test_every_error_of_the_store_is_a_freehold_error(
    database: PostgresDatabase, queue: Store, admin: Connection[Any]
) -> None:
    admin.execute("alter table freehold.job add constraint no_bad_tasks check (task <> 'bad')")
    with pytest.raises(FreeholdError, match="the database refused"):
        queue.enqueue([NewJob(task="bad")])
    role = f"nothing_{uuid.uuid4().hex}"
    admin.execute(f"create role {role} login".encode())
    url = f"{database.url}&user={role}"
    weak = PostgresDatabase(url)
    with pytest.raises(FreeholdError, match="may not do this"):
        Store(weak.session()).enqueue([JOB])
    weak.close()
    admin.execute(f"drop role {role}".encode())
