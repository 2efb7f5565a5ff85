"""With synchronous replication, an answer that a job exists, or has ended, waits for a standby.

A canceled enqueue ends the server's wait for its standby: the job is visible, and no standby has
it. If the primary dies then, the job is lost, so no caller may have got its id. The end of a job
becomes visible in the same way, and a new primary may run the job again. So does any change that a
second call finds made: "already canceled" is false on a new primary where nothing was canceled.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest

from freehold.errors import StoreError, StoreUnavailable
from freehold.lab.devpostgres import DevPostgres
from freehold.model import schedule_changes
from freehold.model.audit import Author
from freehold.model.bulk import BulkOperation, BulkState, BulkVerb
from freehold.model.flow import FlowKind, NewFlow, NewNode
from freehold.model.job import NewJob
from freehold.model.operator_actions import ActionResult, ActionStatus, OperatorVerb
from freehold.model.schedule import define_schedule
from freehold.model.state import State
from freehold.model.timing import Every
from freehold.model.waiting import Waiting
from freehold.operations import bulk as bulk_operations
from freehold.operations import flows as flow_operations
from freehold.operator import resume_lane, resume_queue
from freehold.operator_schedules import resume_schedule
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.statements import StatementGroup, Verb, nothing
from freehold.store.store import AsyncStore
from freehold.store.types import ClaimRequest, CreatedFlow, JobFilter, QueueDemand
from freehold.store.verbs import bulk as bulk_verbs
from freehold.store.verbs import flow_actions, flows, pause, schedules, signals, workflows
from freehold.store.verbs.claim import claim
from freehold.store.verbs.enqueue import enqueue
from freehold.store.verbs.operator import operate
from tests.chaos.standby import start_standby
from tests.frozen_server import frozen

WAIT_SECONDS = 120.0
ANN = Author("ann", "cli", None)
_WAITING = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'"


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[DevPostgres, DevPostgres]]:
    with DevPostgres() as primary:
        with closing(PostgresDatabase(primary.url)) as database:
            database.migrate()
        standby = start_standby(primary, {})
        with closing(standby):
            yield primary, standby


@pytest.mark.parametrize(
    "job",
    [
        NewJob(task="charge", unique_key="order-7"),
        NewJob(task="charge", idempotency_key="request-7"),
        NewJob(task="charge", waiting=Waiting(key="order-7")),
    ],
    ids=["unique_key", "idempotency_key", "waiting_key"],
)
def test_a_key_is_answered_only_when_a_standby_has_its_job(
    servers: tuple[DevPostgres, DevPostgres], job: NewJob
) -> None:
    primary, standby = servers

    async def scenario() -> None:
        database = PostgresDatabase(primary.url)
        store = AsyncStore(database.async_session())
        await store.queues()
        with frozen(standby):
            canceled = asyncio.create_task(store.enqueue([job]))
            await asyncio.to_thread(_wait_for_a_waiting_commit, primary)
            canceled.cancel()
            await asyncio.wait([canceled])
            assert canceled.cancelled()
            assert (await store.queues())[0].ready >= 1  # visible, and no standby has it
            for connection in database._connections.pool_of_loop()._idle:
                connection.answer_seconds = 1.0
            with pytest.raises(StoreUnavailable, match="did not answer within"):
                await store.enqueue([job])
        (found,) = await store.enqueue([job])
        assert not found.created
        await database.aclose()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "arguments",
    [
        "'charge', unique_key => 'order-8'",
        "'charge', idempotency_key => 'request-8'",
        "'charge', unique_key => 'order-8', unique_until => 'start'",
    ],
    ids=["unique_key", "idempotency_key", "waiting_key"],
)
def test_the_function_enqueue_waits_for_a_standby_that_has_the_job_of_a_key(
    servers: tuple[DevPostgres, DevPostgres], arguments: str
) -> None:
    primary, standby = servers
    call = f"select created from freehold.enqueue({arguments})".encode()
    with (
        psycopg.connect(primary.url, autocommit=True) as first,
        psycopg.connect(primary.url, autocommit=True) as second,
        ThreadPoolExecutor(1) as pool,
    ):
        with frozen(standby):
            canceled = pool.submit(first.execute, call)
            _wait_for_a_waiting_commit(primary)
            first.cancel_safe()
            assert canceled.result().fetchone() == (True,)  # visible, and no standby has it
            repeated = pool.submit(second.execute, call)
            _wait_for_a_waiting_commit(primary, unless=repeated.done)
            assert not repeated.done()
        assert repeated.result().fetchone() == (False,)


def test_a_job_is_answered_to_have_ended_only_when_a_standby_has_its_end(
    servers: tuple[DevPostgres, DevPostgres],
) -> None:
    primary, standby = servers

    async def scenario() -> None:
        database = PostgresDatabase(primary.url)
        store = AsyncStore(database.async_session())
        (job,) = await store.enqueue([NewJob(task="charge")])
        with frozen(standby):
            canceled = asyncio.create_task(
                store.operate(OperatorVerb.CANCEL, [job.id], "test", None)
            )
            await asyncio.to_thread(_wait_for_a_waiting_commit, primary)
            canceled.cancel()
            await asyncio.wait([canceled])
            (seen,) = (await store.read([job.id])).values()
            assert seen.state is State.CANCELED  # visible, and no standby has it
            for connection in database._connections.pool_of_loop()._idle:
                connection.answer_seconds = 1.0
            with pytest.raises(StoreUnavailable, match="did not answer within"):
                await store.operate(OperatorVerb.CANCEL, [job.id], "test", None)
        (answer,) = await store.operate(OperatorVerb.CANCEL, [job.id], "test", None)
        assert answer.status is ActionStatus.ALREADY
        await database.aclose()

    asyncio.run(scenario())


def _batch() -> Verb[int]:
    new = NewFlow(kind=FlowKind.BATCH, name="b", sealed=False)
    flow, _ = yield from flows.create_batch(new, [NewJob(task="t")], within=False)
    return flow


def _workflow(key: str) -> Verb[object]:
    new = NewFlow(kind=FlowKind.WORKFLOW, name="w", key=key)
    nodes = [NewNode(number=1, name="n", job=NewJob(task="t"))]
    return workflows.create_workflow(new, nodes, within=False)


def _paused_schedule() -> Verb[None]:
    definition = define_schedule("nightly", Every(seconds=60.0), NewJob(task="t"))
    yield from schedules.put_schedule(definition, "ann", ANN)
    yield from schedules.change_schedule("nightly", _paused, ANN, "pause")


def _paused(schedule: Any, now: Any) -> Any:
    return schedule_changes.paused(schedule, now, "ann", None, None)


def _claimed() -> Verb[int]:
    yield from enqueue([NewJob(task="t", queue="claimed")])
    demands = (QueueDemand("claimed", 1),)
    (attempt,) = yield from claim(ClaimRequest(owner="w", demands=demands, lease_seconds=3600.0))
    return attempt.job_id


def _signal() -> Verb[bool]:
    return signals.send_signal("paid/7", b"1", None, 3600.0)


def _bulk() -> Verb[int]:
    return bulk_verbs.start(BulkVerb.PAUSE, JobFilter(task="t"), None, ANN)


#: A change that a second call finds made: what precedes it, and the call with the result of that.
CHANGES: dict[str, tuple[Callable[[], Verb[Any]], Callable[[Any], Verb[Any]]]] = {
    "flow_canceled_by_operator": (
        _batch,
        lambda flow: flow_operations.cancel_flow(flow, by="ann"),
    ),
    "flow_canceled_by_producer": (_batch, lambda flow: flow_actions.cancel_flow(flow, ANN)),
    "flow_sealed_by_operator": (_batch, lambda flow: flow_operations.seal_flow(flow, by="ann")),
    "flow_sealed_by_producer": (_batch, lambda flow: flows.seal_flow(flow)),
    "workflow_of_a_key": (nothing, lambda _: _workflow("order-7")),
    "queue_resumed": (
        lambda: pause.pause_queue("mail", "ann", None, None, ANN),
        lambda _: resume_queue("mail", by="ann"),
    ),
    "all_queues_resumed": (
        lambda: pause.pause_queue("*", "ann", None, None, ANN),
        lambda _: resume_queue("*", by="ann"),
    ),
    "lane_resumed": (
        lambda: pause.pause_lane("account-7", "ann", None, None, ANN),
        lambda _: resume_lane("account-7", by="ann"),
    ),
    "schedule_resumed": (_paused_schedule, lambda _: resume_schedule("nightly", by="ann")),
    "bulk_operation_stopped": (_bulk, lambda bulk: bulk_operations.stop(bulk, by="ann")),
    "stop_requested": (_claimed, lambda job: operate(OperatorVerb.CANCEL, [job], "ann", None)),
    "signal_sent": (nothing, lambda _: _signal()),
}


@pytest.mark.parametrize(("before", "change"), CHANGES.values(), ids=CHANGES)
def test_a_change_is_answered_to_be_made_already_only_when_a_standby_has_it(
    servers: tuple[DevPostgres, DevPostgres],
    before: Callable[[], Verb[Any]],
    change: Callable[[Any], Verb[Any]],
) -> None:
    primary, standby = servers

    async def scenario() -> None:
        database = PostgresDatabase(primary.url)
        store = AsyncStore(database.async_session())
        prepared = await store.run(before())
        writing = await _until_write(store, change(prepared))
        with frozen(standby):
            canceled = asyncio.create_task(store.session.execute(writing))
            await asyncio.to_thread(_wait_for_a_waiting_commit, primary)
            canceled.cancel()
            await asyncio.wait([canceled])
            assert canceled.cancelled()
            await store.now()
            for connection in database._connections.pool_of_loop()._idle:
                connection.answer_seconds = 1.0
            with pytest.raises(StoreError, match="did not answer within"):
                await store.run(change(prepared))
        _assert_already(await store.run(change(prepared)))
        await database.aclose()

    asyncio.run(scenario())


async def _until_write(store: AsyncStore, steps: Verb[Any]) -> StatementGroup:
    """The first group that writes more than a number that was drawn."""
    group = next(steps)
    while not group.writes or group.statements[0].name == "draw_flow_ids":
        group = steps.send(await store.session.execute(group))
    return group


def _assert_already(answer: object) -> None:
    match answer:
        case [ActionResult(status=status)]:
            assert status is ActionStatus.REQUESTED
        case CreatedFlow():
            assert not answer.created
        case BulkOperation():
            assert answer.state is BulkState.STOPPED
        case _:
            assert answer is False


def _wait_for_a_waiting_commit(
    primary: DevPostgres, unless: Callable[[], bool] = lambda: False
) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    with psycopg.connect(primary.url, autocommit=True) as admin:
        while admin.execute(_WAITING).fetchone() == (0,) and not unless():
            assert time.monotonic() < deadline, "no commit waits for the standby"
            time.sleep(0.01)
