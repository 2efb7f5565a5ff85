"""Load on lanes: everything that can happen to a lane, at once, for some seconds.

Writers hold transactions open and roll some of them back; claimers end their attempts with every
outcome, or abandon them; others recover, make ready, cancel, pause and resume. The leases of each
claimer are recorded, to be checked afterwards.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import psycopg

from freehold.errors import IllegalTransition, JobNotFound
from freehold.model.job import Attempt, NewJob
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.policy import Policy
from freehold.model.retry import Retry
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.store import Store
from freehold.store.types import AttemptEnd, ClaimRequest, QueueDemand

#: After any outcome the lane continues, and soon.
POLICY = Policy(
    retry=Retry(base_seconds=0.01, cap_seconds=0.05), on_cancel="cancel", lane_on_failure="skip"
)
ENDINGS = (
    [OutcomeKind.SUCCESS] * 12
    + [OutcomeKind.ERROR] * 3
    + [OutcomeKind.SNOOZE, OutcomeKind.GIVE_BACK, OutcomeKind.FAIL]
)
VERBS = [OperatorVerb.CANCEL, OperatorVerb.PAUSE, OperatorVerb.RESUME, OperatorVerb.RETRY]
SHORT_LEASE_SECONDS = 0.03
LONG_LEASE_SECONDS = 60.0


@dataclass(frozen=True)
class ObservedLease:
    """An attempt that its owner held from the return of the claim until its end was sent."""

    target: str
    job_id: int
    token: int
    since: float
    until: float


@dataclass
class LaneLoad:
    database: PostgresDatabase
    url: str
    lanes: int
    #: An operator's action promotes the next job of its lane, which would hide a stuck lane.
    operators: int
    observed: list[ObservedLease] = field(default_factory=list)
    committed: set[int] = field(default_factory=set)
    rolled_back: set[int] = field(default_factory=set)
    writing: threading.Event = field(default_factory=threading.Event)
    working: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.store = Store(self.database.session())
        self.writing.set()
        self.working.set()

    # -- writers -------------------------------------------------------------------------------

    def write(self, number: int) -> None:
        rng = random.Random(number)
        with psycopg.connect(self.url) as connection:
            inside = Store(self.database.caller_session(connection))
            while self.writing.is_set():
                if self.store.counts().following > 10 * self.lanes:
                    think(rng, 0.05)
                    continue
                ids = [self._enqueue(inside, rng) for _ in range(rng.randrange(1, 4))]
                think(rng, 0.02)
                if rng.random() < 0.15:
                    connection.rollback()
                    self.rolled_back.update(*ids)
                else:
                    connection.commit()
                    self.committed.update(*ids)

    def _enqueue(self, inside: Store, rng: random.Random) -> set[int]:
        jobs = [self._job(rng) for _ in range(rng.randrange(1, 5))]
        return {each.id for each in inside.enqueue(jobs)}

    def _job(self, rng: random.Random) -> NewJob:
        return NewJob(
            task="t",
            target=f"lane {rng.randrange(self.lanes)}",
            queue=rng.choice(["default", "other"]),
            priority=rng.choice([-5, 0, 5]),
            delay_seconds=rng.choice([None, None, 0.02]),
            max_attempts=3,
            policy=POLICY,
        )

    # -- claimers ------------------------------------------------------------------------------

    def work(self, number: int) -> None:
        rng = random.Random(100 + number)
        owner = f"w{number}"
        while self.working.is_set():
            abandons = rng.random() < 0.1
            attempts = self._claim(owner, rng, abandons)
            since = time.monotonic()
            if not attempts:
                think(rng, 0.002)
            elif not abandons:
                self._finish(owner, attempts, rng, since)

    def _claim(self, owner: str, rng: random.Random, abandons: bool) -> list[Attempt]:
        demands = [QueueDemand(queue, rng.randrange(1, 6)) for queue in ("default", "other")]
        rng.shuffle(demands)
        lease = SHORT_LEASE_SECONDS if abandons else LONG_LEASE_SECONDS
        return self.store.claim(
            ClaimRequest(owner=owner, lease_seconds=lease, demands=tuple(demands))
        )

    def _finish(
        self, owner: str, attempts: list[Attempt], rng: random.Random, since: float
    ) -> None:
        think(rng, 0.004)
        # Without operators a paused job would never be resumed.
        endings = [*ENDINGS, OutcomeKind.PAUSE] if self.operators else ENDINGS
        ended = [
            AttemptEnd(each, Outcome(kind=rng.choice(endings), delay_seconds=0.01))
            for each in attempts
        ]
        until = time.monotonic()
        finished = self.store.finish(owner, ended)
        for each in attempts:
            if each.job_id in finished.decisions:
                assert each.target is not None
                self.observed.append(
                    ObservedLease(each.target, each.job_id, each.token, since, until)
                )

    # -- sweepers and operators ----------------------------------------------------------------

    def sweep(self, number: int) -> None:
        rng = random.Random(200 + number)
        while self.working.is_set():
            self.store.recover(rng.randrange(1, 20), rng.random())
            self.store.make_ready(rng.randrange(1, 50))
            think(rng, 0.01)

    def operate(self, number: int) -> None:
        rng = random.Random(300 + number)
        while self.writing.is_set():
            known = list(self.committed)[-200:]
            if known:
                self._try(rng.choice(VERBS), rng.sample(known, min(3, len(known))))
            think(rng, 0.02)

    def _try(self, verb: OperatorVerb, ids: list[int]) -> None:
        for job_id in ids:
            try:
                self.store.operate(verb, [job_id], "operator", "because")
            except (IllegalTransition, JobNotFound):
                continue

    def rescue(self) -> int:
        """Resume all jobs that wait for a person. Returns how many jobs are still live."""
        rows = self.rows("select id, stage from freehold.jobs")
        waiting = ("paused", "paused_follower", "failed")
        self._try(OperatorVerb.RESUME, [job_id for job_id, stage in rows if stage in waiting])
        return len(rows)

    def rows(self, text: str) -> list[Any]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(text.encode()).fetchall()

    def threads(self) -> list[Callable[[], None]]:
        workers = [partial(self.work, number) for number in range(4)]
        writers = [partial(self.write, number) for number in range(2)]
        sweepers = [partial(self.sweep, number) for number in range(2)]
        operators = [partial(self.operate, number) for number in range(self.operators)]
        return [*workers, *writers, *sweepers, *operators]


def think(rng: random.Random, most_seconds: float) -> None:
    """Think time, in which other threads run."""
    time.sleep(rng.random() * most_seconds)
