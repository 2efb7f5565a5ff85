"""Overlapping batches in any order, from all sides at once: no deadlock.

FREEHOLD_FIRE_SECONDS makes it longer.
"""

from __future__ import annotations

import os
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
from tests.crowd import at_once

SECONDS = float(os.environ.get("FREEHOLD_FIRE_SECONDS", "3"))
#: Of each thread, however long a busy machine takes for them.
LEAST_STEPS = 5
JOBS = 400
BATCH = 60
OWNER = "everybody"
#: Jobs come back at once, for ever.
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


def for_a_while(step: Callable[[random.Random], object], seed: int) -> None:
    chance = random.Random(seed)
    deadline = time.monotonic() + SECONDS
    steps = 0
    while steps < LEAST_STEPS or time.monotonic() < deadline:
        step(chance)
        steps += 1


class Crowd:
    """All use the same leases, as if the owner's threads had lost their heads."""

    def __init__(self, queue: Store) -> None:
        self.queue = queue
        self.ids = [each.id for each in queue.enqueue([AGAIN] * JOBS)]
        self.leased: dict[int, Attempt] = {}
        self.claim(random.Random(0))

    def claim(self, _: random.Random) -> None:
        ask = ClaimRequest(owner=OWNER, lease_seconds=0.2, wants=(QueueDemand("default", JOBS),))
        self.leased.update((attempt.job_id, attempt) for attempt in self.queue.claim(ask))

    def some(self, chance: random.Random) -> list[Attempt]:
        """Some of the leases, in any order."""
        return [self.leased[job_id] for job_id in chance.sample(sorted(self.leased), BATCH)]

    def renew(self, chance: random.Random) -> None:
        keys = [LeaseKey(each.job_id, each.token) for each in self.some(chance)]
        self.queue.renew(OWNER, keys, 0.2)
        self.queue.start(OWNER, keys)

    def finish(self, chance: random.Random) -> None:
        kinds = [OutcomeKind.ERROR, OutcomeKind.SNOOZE, OutcomeKind.GIVE_BACK]
        ended = [AttemptEnd(each, Outcome(kind=chance.choice(kinds))) for each in self.some(chance)]
        self.queue.finish(OWNER, ended)
        self.claim(chance)

    def succeed(self, chance: random.Random) -> None:
        success = Outcome(kind=OutcomeKind.SUCCESS)
        ended = [AttemptEnd(each, success) for each in self.some(chance)[:10]]
        done = self.queue.finish(OWNER, ended).decisions
        if done:
            self.queue.operate(OperatorVerb.RETRY, list(done), "me", None)

    def recover(self, chance: random.Random) -> None:
        self.queue.recover(BATCH, chance.random())
        self.queue.make_ready(BATCH)

    def operate(self, chance: random.Random) -> None:
        ids = chance.sample(self.ids, 10)
        try:
            self.queue.operate(
                chance.choice([OperatorVerb.PAUSE, OperatorVerb.RESUME]), ids, "me", None
            )
        except IllegalTransition:
            return


@pytest.mark.requirement("S0.8", "P10")
def test_batches_of_all_verbs_in_any_order_never_deadlock(
    database: PostgresDatabase, queue: Store
) -> None:
    before = deadlocks(database)
    crowd = Crowd(queue)
    steps = [crowd.renew, crowd.finish, crowd.succeed, crowd.recover, crowd.operate, crowd.renew]
    at_once([partial(for_a_while, step, seed) for seed, step in enumerate(steps)])
    assert deadlocks(database) == before
    ids = {job_id for job_id, job in queue.read(crowd.ids).items()}
    assert ids == set(crowd.ids), "no job was lost on the way"


@pytest.mark.requirement("P9")
def test_batches_of_keys_in_any_order_never_deadlock(
    database: PostgresDatabase, queue: Store
) -> None:
    before = deadlocks(database)

    def enqueue(chance: random.Random) -> None:
        numbers = chance.sample(range(100), 40)
        jobs = [
            NewJob(
                task="t",
                unique_key=chance.choice([None, f"u{n}"]),
                idempotency_key=chance.choice([None, f"i{chance.randrange(100)}"]),
                idempotency_seconds=0.01,
            )
            for n in numbers
        ]
        answers = queue.enqueue(jobs)
        if chance.random() < 0.5:
            queue.delete([each.id for each in answers if each.created])

    at_once([partial(for_a_while, enqueue, seed) for seed in range(5)])
    assert deadlocks(database) == before
