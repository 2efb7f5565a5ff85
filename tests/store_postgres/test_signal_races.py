"""A job is suspended at the moment at which its signal is sent and delivered: none misses it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from freehold.model.job import Attempt
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.step import StepKind
from freehold.store.store import Store
from freehold.store.types import AttemptEnd
from tests.concurrency import wait_until
from tests.sizes import sized
from tests.stores import PostgresUnderTest, key_of

ROUNDS = sized("SIGNAL_RACES", short=150, long=1500)


def _wait(store: Store, attempt: Attempt, name: str) -> None:
    found = store.await_signal(attempt.owner, key_of(attempt), name, 1, 3600.0)
    assert found is not None
    kind, fields = OutcomeKind.SUCCESS, {}
    if found.kind is StepKind.WAIT:
        kind = OutcomeKind.SUSPEND
        fields = {"delay_seconds": 3600.0, "waits_for": f"signal/{name}"}
    end = AttemptEnd(attempt, Outcome(kind=kind, **fields))  # type: ignore[arg-type]
    assert store.finish(attempt.owner, [end]).lost == ()


@pytest.mark.requirement("N9", "N10")
def test_no_wait_misses_a_signal_of_the_same_moment(
    postgres_under_test: PostgresUnderTest,
) -> None:
    under_test = postgres_under_test
    under_test.reset()
    for _ in range(ROUNDS):
        under_test.add()
    attempts = under_test.claim(count=ROUNDS, lease_seconds=100_000.0)
    assert len(attempts) == ROUNDS
    stores = [Store(under_test.database.session()) for _ in range(3)]
    barrier = threading.Barrier(3, timeout=120.0)

    def each_round(act: Callable[[int], object]) -> None:
        for number in range(ROUNDS):
            barrier.wait()
            act(number)

    with ThreadPoolExecutor(3) as pool:
        parts = [
            pool.submit(each_round, lambda n: _wait(stores[0], attempts[n], f"s{n}")),
            pool.submit(each_round, lambda n: stores[1].send_signal(f"s{n}", b"1", None, 1e6)),
            pool.submit(each_round, lambda n: stores[2].deliver_signals(100)),
        ]
        for part in parts:
            part.result()
    while under_test.store.sweep_check(()).signals:
        under_test.store.deliver_signals(1000)
    stuck = under_test.sql("select id from {s}job where stage not in ({ready}, {lane_head})")
    assert stuck == []


@pytest.mark.requirement("N10")
def test_a_repeated_call_waits_for_the_first_and_finds_its_step(
    postgres_under_test: PostgresUnderTest,
) -> None:
    """The answer to the first call was lost, and its transaction still runs: its step is not
    visible to the second one, which must not take the lease for lost."""
    under_test = postgres_under_test
    under_test.reset()
    under_test.add()
    attempt = under_test.claim_one()
    assert under_test.store.send_signal("paid", b"7", None, 1e6)
    wait = (attempt.owner, key_of(attempt), "paid", 1, 60.0)
    first = under_test.database.transaction()
    first.begin()
    assert Store(first.session).await_signal(*wait) is not None
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(Store(under_test.database.session()).await_signal, *wait)
        waiting = (
            "select pid from pg_stat_activity "
            "where wait_event_type = 'Lock' and datname = current_database()"
        )
        wait_until(lambda: bool(under_test.sql(waiting)), "the second call waits")
        first.commit()
        found = second.result(120.0)
    assert found is not None
    assert (found.kind, found.value) == (StepKind.SIGNAL, "7")
