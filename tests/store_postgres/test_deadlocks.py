"""Concurrent statements on overlapping sets of rows, in any order, never deadlock.

FREEHOLD_TEST_LOAD_SECONDS makes it longer.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial

import psycopg
import pytest

from freehold.errors import IllegalTransition
from freehold.model.job import Attempt, NewJob
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.policy import Policy
from freehold.model.retry import Retry
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.store import Store
from freehold.store.types import AttemptEnd, ClaimRequest, LeaseKey, QueueDemand
from tests.concurrency import run_concurrently
from tests.sizes import sized

SECONDS = sized("LOAD_SECONDS", short=2, long=30)
#: Of each thread, also if a busy machine needs longer for them.
LEAST_STEPS = 5
JOBS = 400
BATCH = 60
OWNER = "w"
#: Retried at once, for ever.
AGAIN = NewJob(
    task="t", max_attempts=30_000, policy=Policy(retry=Retry(base_seconds=0.0, jitter=0.0))
)


def deadlocks(database: PostgresDatabase) -> int:
    with psycopg.connect(database.url) as connection:
        row = connection.execute(
            "select deadlocks from pg_stat_database where datname = current_database()"
        ).fetchone()
    assert row is not None
    return int(row[0])


def repeat(step: Callable[[random.Random], object], seed: int) -> None:
    """Until the time is up and the least number of steps is done."""
    rng = random.Random(seed)
    deadline = time.monotonic() + SECONDS
    steps = 0
    while steps < LEAST_STEPS or time.monotonic() < deadline:
        step(rng)
        steps += 1


class SharedLeases:
    """Threads of one owner that all use the same leases."""

    def __init__(self, queue: Store) -> None:
        self.queue = queue
        self.ids = [each.id for each in queue.enqueue([AGAIN] * JOBS)]
        self.leased: dict[int, Attempt] = {}
        self.claim(random.Random(0))

    def claim(self, _: random.Random) -> None:
        request = ClaimRequest(
            owner=OWNER, lease_seconds=0.2, demands=(QueueDemand("default", JOBS),)
        )
        self.leased.update((attempt.job_id, attempt) for attempt in self.queue.claim(request))

    def some(self, rng: random.Random) -> list[Attempt]:
        """Some of the leases, in any order."""
        return [self.leased[job_id] for job_id in rng.sample(sorted(self.leased), BATCH)]

    def renew(self, rng: random.Random) -> None:
        keys = [LeaseKey(each.job_id, each.token) for each in self.some(rng)]
        self.queue.renew(OWNER, keys, 0.2)
        self.queue.mark_running(OWNER, keys)

    def finish(self, rng: random.Random) -> None:
        kinds = [OutcomeKind.ERROR, OutcomeKind.SNOOZE, OutcomeKind.GIVE_BACK]
        ended = [AttemptEnd(each, Outcome(kind=rng.choice(kinds))) for each in self.some(rng)]
        self.queue.finish(OWNER, ended)
        self.claim(rng)

    def succeed(self, rng: random.Random) -> None:
        success = Outcome(kind=OutcomeKind.SUCCESS)
        ended = [AttemptEnd(each, success) for each in self.some(rng)[:10]]
        done = self.queue.finish(OWNER, ended).decisions
        if done:
            self.queue.operate(OperatorVerb.RETRY, list(done), "me", None)

    def recover(self, rng: random.Random) -> None:
        self.queue.recover(BATCH, rng.random())
        self.queue.make_ready(BATCH)

    def operate(self, rng: random.Random) -> None:
        ids = rng.sample(self.ids, 10)
        try:
            self.queue.operate(
                rng.choice([OperatorVerb.PAUSE, OperatorVerb.RESUME]), ids, "me", None
            )
        except IllegalTransition:
            return


@pytest.mark.requirement("S0.8", "P10")
def test_all_verbs_on_the_same_jobs_in_any_order_never_deadlock(
    database: PostgresDatabase, queue: Store
) -> None:
    before = deadlocks(database)
    leases = SharedLeases(queue)
    steps = [
        leases.renew,
        leases.finish,
        leases.succeed,
        leases.recover,
        leases.operate,
        leases.renew,
    ]
    run_concurrently([partial(repeat, step, seed) for seed, step in enumerate(steps)])
    assert deadlocks(database) == before
    ids = {job_id for job_id, job in queue.read(leases.ids).items()}
    assert ids == set(leases.ids), "no job was lost"


@pytest.mark.requirement("P9")
def test_the_same_keys_in_any_order_never_deadlock(
    database: PostgresDatabase, queue: Store
) -> None:
    before = deadlocks(database)

    def enqueue(rng: random.Random) -> None:
        numbers = rng.sample(range(100), 40)
        jobs = [
            NewJob(
                task="t",
                unique_key=rng.choice([None, f"u{n}"]),
                idempotency_key=rng.choice([None, f"i{rng.randrange(100)}"]),
                idempotency_seconds=0.01,
            )
            for n in numbers
        ]
        results = queue.enqueue(jobs)
        if rng.random() < 0.5:
            queue.delete([each.id for each in results if each.created])

    run_concurrently([partial(repeat, enqueue, seed) for seed in range(5)])
    assert deadlocks(database) == before
