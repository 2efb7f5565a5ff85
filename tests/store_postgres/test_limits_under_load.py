"""A limit of seven under 64 claimers, some of which die with their leases: never eight.

Judged by the timestamps of the database: when each lease began, and when it ended or expired.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from freehold.model.job import Attempt, NewJob
from freehold.model.limit import ALL_QUEUES, Limit, Rate
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.policy import Policy
from freehold.model.retry import Retry
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.store import Store
from freehold.store.types import AttemptEnd, ClaimRequest, QueueDemand
from freehold.store.verbs.claim import ClaimCursors
from tests.concurrency import run_concurrently
from tests.sizes import sized
from tests.store_postgres.conftest import Connect

CLAIMERS = 64
LIMIT = 7
JOBS = sized("LIMITED_JOBS", short=400, long=700)
KEY = "key:1"
POLICY = Policy(retry=Retry(base_seconds=0.001, cap_seconds=0.01))
DEATH = 0.1
SHORT_LEASE_SECONDS = 0.05
LONG_LEASE_SECONDS = 600.0
CEILING_SECONDS = 120.0

LIMITS: dict[str, Callable[[Store], None]] = {
    "a queue": lambda store: store.set_queue_limit("default", Limit(LIMIT)),
    "all queues": lambda store: store.set_queue_limit(ALL_QUEUES, Limit(LIMIT)),
    "a key": lambda store: store.set_key_limit(KEY, Limit(LIMIT)),
    "a class of keys": lambda store: store.set_key_limit("key:*", Limit(LIMIT)),
}


class Claimers:
    """Of one queue, until it is empty."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self.done = threading.Event()
        self._gives_up_at = time.monotonic() + CEILING_SECONDS

    def store(self) -> Store:
        return Store(self._database.session())

    def claimer(self, number: int) -> Callable[[], None]:
        store, rng = self.store(), random.Random(number)
        cursors = ClaimCursors(time.monotonic)
        return lambda: self._work(store, f"w{number}", rng, cursors)

    def _work(self, store: Store, owner: str, rng: random.Random, cursors: ClaimCursors) -> None:
        while not self.done.is_set():
            dies = rng.random() < DEATH
            attempts = self._claim(store, owner, cursors, dies)
            if attempts and not dies:
                self._finish(store, owner, attempts, rng)
            elif not attempts:
                # Like a worker that found nothing.
                time.sleep(rng.random() * 0.25)

    def _claim(self, store: Store, owner: str, cursors: ClaimCursors, dies: bool) -> list[Attempt]:
        lease = SHORT_LEASE_SECONDS if dies else LONG_LEASE_SECONDS
        demands = (QueueDemand("default", 3),)
        request = ClaimRequest(owner=owner, lease_seconds=lease, demands=demands)
        return store.claim(request, cursors)

    def _finish(
        self, store: Store, owner: str, attempts: list[Attempt], rng: random.Random
    ) -> None:
        time.sleep(rng.random() * 0.004)
        endings = [OutcomeKind.SUCCESS] * 9 + [OutcomeKind.ERROR]
        ended = [AttemptEnd(each, Outcome(kind=rng.choice(endings))) for each in attempts]
        store.finish(owner, ended)

    def sweeper(self) -> Callable[[], None]:
        return lambda: self._sweep(self.store())

    def _sweep(self, store: Store) -> None:
        """Until every job has ended, or a long time has passed."""
        rng = random.Random(0)
        while time.monotonic() < self._gives_up_at:
            store.recover(50, rng.random())
            store.make_ready(200)
            store.admit_limited(100)
            counts = store.counts()
            if not counts.ready + counts.waiting + counts.leased + store.admit_limited(100):
                break
            time.sleep(0.01)
        self.done.set()


def most_at_once(connection: Any) -> int:
    """The largest number of leases that were live at the same time."""
    rows = connection.execute(
        """
        select leased_at, finished_at from freehold.history
        union all
        select leased_at,
            case kind when 'lease_lost' then leased_at + make_interval(secs => %s) else at end
        from freehold.event where leased_at is not null and kind in ('lease_lost', 'retried')
        """,
        (SHORT_LEASE_SECONDS,),
    ).fetchall()
    changes: list[tuple[datetime, int]] = []
    for began, ended in rows:
        changes += [(began, 1), (ended, -1)]
    live = most = 0
    for _at, step in sorted(changes):  # an end before a beginning at the same instant
        live += step
        most = max(most, live)
    return most


@pytest.fixture
def wide(database: PostgresDatabase) -> Iterator[PostgresDatabase]:
    """With a connection for each thread."""
    wide = PostgresDatabase(database.url, pool_size=CLAIMERS + 2)
    yield wide
    wide.close()


@pytest.mark.requirement("S0.10", "P8")
@pytest.mark.parametrize("kind", LIMITS)
def test_a_limit_of_seven_is_never_exceeded(
    wide: PostgresDatabase, queue: Store, connect: Connect, kind: str
) -> None:
    LIMITS[kind](queue)
    claimers = Claimers(wide)
    job = NewJob(task="t", limit_key=KEY, max_attempts=1000, policy=POLICY)
    queue.enqueue([job] * JOBS)

    run_concurrently(
        [*[claimers.claimer(number) for number in range(CLAIMERS)], claimers.sweeper()]
    )

    left = connect().execute("select count(*), min(stage) from freehold.job").fetchone()
    assert left == (0, None)
    assert most_at_once(connect()) == LIMIT


@pytest.mark.requirement("P8")
def test_a_rate_is_kept_by_many_claimers(
    wide: PostgresDatabase, queue: Store, connect: Connect
) -> None:
    """In every window of one second, by the timestamps of the database."""
    queue.set_queue_limit("default", Limit(rate=Rate(50, 1.0)))
    claimers = Claimers(wide)
    queue.enqueue([NewJob(task="t", max_attempts=1000, policy=POLICY)] * 120)

    run_concurrently([*[claimers.claimer(number) for number in range(16)], claimers.sweeper()])

    rows = connect().execute(
        "select leased_at from freehold.history union all "
        "select leased_at from freehold.event where leased_at is not null"
    )
    starts = sorted(row[0] for row in rows)
    for index, start in enumerate(starts[50:]):
        assert (start - starts[index]).total_seconds() >= 1.0, f"51 starts from {starts[index]}"
