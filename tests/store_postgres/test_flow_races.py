"""Ends, folds, additions and suspensions at the same moment: every flow closes, once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from freehold.model.audit import Author
from freehold.model.flow import FlowKind, FlowState, Moment, NewFlow, NewNode
from freehold.model.job import Attempt, ErrorInfo, NewJob
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.store import Store
from freehold.store.types import AttemptEnd, ClaimRequest, QueueDemand
from freehold.store.verbs.fold import fold_flows
from tests.concurrency import wait_until
from tests.sizes import sized
from tests.store_contract.flows import settle
from tests.stores import PostgresUnderTest, key_of

ROUNDS = sized("FLOW_RACES", short=25, long=400)
CLIENTS = 4
SUCCESS = Outcome(kind=OutcomeKind.SUCCESS)
#: Such a wait is for a transaction, which belongs to no database.
WAITING_FOR_A_ROW = b"""
    select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"""


def _at_once(acts: list[Callable[[int], object]], rounds: int) -> None:
    """Each act once in a round; all acts of a round begin together."""
    barrier = threading.Barrier(len(acts), timeout=120.0)

    def each_round(act: Callable[[int], object]) -> None:
        for number in range(rounds):
            barrier.wait()
            act(number)

    with ThreadPoolExecutor(len(acts)) as pool:
        for part in [pool.submit(each_round, act) for act in acts]:
            part.result()


def _store(under_test: PostgresUnderTest) -> Store:
    return Store(under_test.database.session())


@pytest.mark.requirement("N11")
def test_the_last_ends_of_a_batch_close_it_without_a_sweep(
    postgres_under_test: PostgresUnderTest,
) -> None:
    """A fold that does not get the lock leaves its row to the second look of the holder."""
    under_test = postgres_under_test
    under_test.reset()
    new = NewFlow(kind=FlowKind.BATCH, name="b", callbacks={Moment.END: NewJob(task="end")})
    flows = []
    for _ in range(ROUNDS):
        jobs = [NewJob(task="t") for _ in range(CLIENTS)]
        flows.append(under_test.store.create_batch(new, jobs, within=False)[0])
    settle(under_test)
    attempts = under_test.claim(count=ROUNDS * CLIENTS, lease_seconds=100_000.0)

    def client(number: int) -> Callable[[int], object]:
        store = _store(under_test)

        def end(round_: int) -> None:
            attempt = attempts[round_ * CLIENTS + number]
            finished = store.finish(attempt.owner, [AttemptEnd(attempt, SUCCESS)])
            while store.advance_flows(finished.flows).is_left:
                """Another has the row for a moment."""

        return end

    _at_once([client(number) for number in range(CLIENTS)], ROUNDS)
    found = under_test.store.read_flows(flows).values()
    assert {flow.state for flow in found} == {FlowState.SUCCEEDED}
    assert under_test.sql("select count(*) from {s}job where task = 'end'") == [(ROUNDS,)]


@pytest.mark.requirement("N12")
def test_an_edge_from_a_source_that_ends_just_then(postgres_under_test: PostgresUnderTest) -> None:
    """It is either seen by the fold, or knows that its source has ended."""
    under_test = postgres_under_test
    under_test.reset()
    flows = []
    for _ in range(ROUNDS):
        nodes = [NewNode(number=n, name=f"n{n}", job=NewJob(task="t")) for n in (1, 2)]
        new = NewFlow(kind=FlowKind.WORKFLOW, name="w")
        flows.append(under_test.store.create_workflow(new, nodes, within=False).id)
    settle(under_test)
    attempts = under_test.claim(count=2 * ROUNDS, lease_seconds=100_000.0)
    ending, adding = _store(under_test), _store(under_test)

    def end(round_: int) -> None:
        source: Attempt = attempts[2 * round_]
        finished = ending.finish(source.owner, [AttemptEnd(source, SUCCESS)])
        ending.advance_flows(finished.flows)

    def add(round_: int) -> None:
        adder: Attempt = attempts[2 * round_ + 1]
        node = NewNode(number=3, name="n3", job=NewJob(task="late"), sources=((1, ""),))
        assert adding.add_nodes(flows[round_], [node], adder.owner, key_of(adder))

    _at_once([end, add], ROUNDS)
    settle(under_test)
    assert under_test.sql("select count(*) from {s}job where stage = {pending}") == [(0,)]
    late = "select count(*) from {s}job where task = 'late' and stage = {ready}"
    assert under_test.sql(late) == [(ROUNDS,)]


@pytest.mark.requirement("N9")
def test_no_suspension_misses_the_end_of_what_it_gathers(
    postgres_under_test: PostgresUnderTest,
) -> None:
    under_test = postgres_under_test
    under_test.reset()
    for _ in range(ROUNDS):
        under_test.add(queue="parents")
    parents = under_test.claim(count=ROUNDS, queue="parents", lease_seconds=100_000.0)
    gathered = []
    for parent in parents:
        jobs = [NewJob(task="t")]
        found = under_test.store.gather(parent.owner, key_of(parent), "g", 1, jobs)
        assert found is not None
        gathered.append(found)
    children = {each.job_id: each for each in under_test.claim(count=ROUNDS, lease_seconds=1e5)}
    waiting, ending = _store(under_test), _store(under_test)

    def suspend(round_: int) -> None:
        waits_for = f"gather/{gathered[round_].flow}"
        outcome = Outcome(kind=OutcomeKind.SUSPEND, delay_seconds=3600.0, waits_for=waits_for)
        end = AttemptEnd(parents[round_], outcome)
        assert waiting.finish(parents[round_].owner, [end]).lost == ()

    def end(round_: int) -> None:
        child = children[gathered[round_].jobs[0]]
        finished = ending.finish(child.owner, [AttemptEnd(child, SUCCESS)])
        ending.advance_flows(finished.flows)

    _at_once([suspend, end], ROUNDS)
    settle(under_test)
    stuck = under_test.sql("select id from {s}job where stage <> {ready}")
    assert stuck == []


@pytest.mark.requirement("N12")
def test_a_member_of_a_group_that_is_locked_is_released_too(
    postgres_under_test: PostgresUnderTest,
) -> None:
    """Another transaction, as an amendment, has locked one of them when the group is released."""
    under_test = postgres_under_test
    under_test.reset()
    nodes = [
        NewNode(number=1, name="a", job=NewJob(task="a")),
        NewNode(number=2, name="b", jobs=(NewJob(task="b"),) * 3, sources=((1, ""),)),
    ]
    new = NewFlow(kind=FlowKind.WORKFLOW, name="w")
    under_test.store.create_workflow(new, nodes, within=False)
    settle(under_test)
    under_test.end(under_test.claim_one(), OutcomeKind.SUCCESS)
    with (
        psycopg.connect(under_test.url) as locker,
        ThreadPoolExecutor(1) as pool,
    ):
        last = "select id from {}.job where task = 'b' order by id desc limit 1 for update"
        locker.execute(last.format(under_test.schema).encode())
        settled = pool.submit(settle, under_test)
        wait_until(lambda: settled.done() or _is_waited_for(locker), "the release has come so far")
        locker.rollback()
        settled.result()
    settle(under_test)
    assert [each.task for each in under_test.claim()] == ["b"] * 3


def _is_waited_for(connection: psycopg.Connection[Any]) -> bool:
    waiting = (
        "select exists (select from pg_locks where pg_backend_pid() = any (pg_blocking_pids(pid)))"
    )
    (row,) = connection.execute(waiting).fetchall()
    return bool(row[0])


@pytest.mark.requirement("N12")
def test_a_retry_of_a_group_that_another_worker_folds(
    postgres_under_test: PostgresUnderTest,
) -> None:
    """Its follower is restored, and would be canceled again by the end of the group."""
    under_test = postgres_under_test
    under_test.reset()
    nodes = [
        NewNode(number=1, name="a", jobs=(NewJob(task="a"),)),
        NewNode(number=2, name="b", job=NewJob(task="b"), sources=((1, ""),)),
    ]
    new = NewFlow(kind=FlowKind.WORKFLOW, name="w")
    flow = under_test.store.create_workflow(new, nodes, within=False).id
    under_test.end(under_test.claim_one(), OutcomeKind.FAIL)
    settle(under_test)
    group = under_test.store.flow_nodes(flow)[0].part
    assert group is not None
    with psycopg.connect(under_test.url) as connection, ThreadPoolExecutor(1) as pool:
        Store(under_test.database.caller_session(connection)).run(fold_flows([group]))
        retried = pool.submit(_store(under_test).retry_flow, flow, Author("ann", "test"))
        wait_until(
            lambda: retried.done() or _is_waited_for(connection), "the retry has come so far"
        )
        connection.commit()
        assert retried.result() == 2
    settle(under_test)
    assert [node.state for node in under_test.store.flow_nodes(flow)] == [None, None]


@pytest.mark.requirement("N11")
def test_a_producer_that_does_not_commit_holds_up_no_other_flow(
    postgres_under_test: PostgresUnderTest,
) -> None:
    under_test = postgres_under_test
    under_test.reset()
    is_open = NewFlow(kind=FlowKind.BATCH, name="open", sealed=False)
    sealed = NewFlow(kind=FlowKind.BATCH, name="sealed")
    first, second = (
        under_test.store.create_batch(new, [NewJob(task="t")], within=False)[0]
        for new in (is_open, sealed)
    )
    settle(under_test)
    for attempt in under_test.claim():
        under_test.end(attempt, OutcomeKind.SUCCESS)
    with psycopg.connect(under_test.url) as connection:
        producer = Store(under_test.database.caller_session(connection))
        assert producer.add_members(first, [NewJob(task="t")], within=True)
        assert under_test.store.advance_flows().is_left
        assert under_test.store.advance_flows([first, second]).is_left
        found = under_test.store.read_flows([first, second])
        assert (found[first].counts.succeeded, found[second].state) == (0, FlowState.SUCCEEDED)
    assert not under_test.store.advance_flows().is_left
    counts = under_test.store.read_flows([first])[first].counts
    assert (counts.total, counts.succeeded) == (2, 1)


def test_an_end_that_waits_for_its_row_is_dated_after_the_wait(postgres_url: str) -> None:
    """Another transaction of the same lease, as an addition of members whose response was lost."""
    database = PostgresDatabase(postgres_url)
    database.migrate()
    store = Store(database.session())
    job_id = store.enqueue([NewJob(task="t")])[0].id
    demands = (QueueDemand("default", 1, 0),)
    (attempt,) = store.claim(
        ClaimRequest(owner="w1", lease_seconds=600.0, demands=demands, tasks=None)
    )
    error = Outcome(kind=OutcomeKind.ERROR, error=ErrorInfo("E", "failed"), ran_seconds=0.0)
    with (
        ThreadPoolExecutor(1) as pool,
        psycopg.connect(postgres_url, autocommit=True) as other,
        psycopg.connect(postgres_url) as holder,
    ):
        holder.execute("select from freehold.job for no key update")
        ended = pool.submit(store.finish, "w1", [AttemptEnd(attempt, error)])
        wait_until(lambda: other.execute(WAITING_FOR_A_ROW).fetchone() is not None, "it waits")
        row = other.execute("select freehold.clock()").fetchone()
        holder.commit()
        assert job_id in ended.result().decisions
    assert row is not None
    assert store.events(job_id)[-1].at > row[0]
    database.close()
