"""A short stress test finds planted races, and finds nothing without them.

The simulation cannot find these: its store executes one statement group after the other.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from freehold.model.job import NewJob
from freehold.model.limit import Limit
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.statements import run
from freehold.store.store import Store
from freehold.store.types import AttemptEnd, ClaimRequest, QueueDemand
from freehold.store.verbs import queries
from freehold.store.verbs.operator import operate
from tests.sizes import sized
from tests.store_postgres.planted_races import (
    OTHERS_END,
    counted_before_the_lock,
    drawn_with_the_first_winner,
    planted,
    promoted_with_the_ending,
)

#: A planted bug is found long before.
MOST_SECONDS = 240.0
#: Without a bug nothing is found in this time, nor in this number of steps. A busy machine needs
#: longer for the steps, and a stress test without steps finds nothing.
CLEAN_SECONDS = sized("CLEAN_SECONDS", short=1, long=10)
CLEAN_STEPS = 50
ALONE_SECONDS = sized("ALONE_SECONDS", short=1, long=5)
ALONE_STEPS = 25
LIMIT = 2
LANES = 6
WORKERS = 6
_CHECK_SECONDS = 0.1
_STUCK_SECONDS = 0.7

Work = Callable[[random.Random], None]
Found = Callable[[], str | None]


class Stress:
    """Threads that run until a violation is found, or the time is up."""

    most_waiting = 60

    def __init__(self, database: PostgresDatabase, workers: int = WORKERS) -> None:
        self.database = database
        self.workers = workers
        self.store = Store(database.session())
        self.observer = psycopg.connect(database.url, autocommit=True)
        self._over = threading.Event()
        #: Completed steps: a stress test without any proves nothing.
        self.done = 0

    def run_threads(
        self, tasks: Sequence[Work], found: Found, seconds: float, steps: int
    ) -> str | None:
        """Until a race is found, or the time has passed and all steps are done."""
        began = time.monotonic()
        with ThreadPoolExecutor(len(tasks)) as pool:
            futures = [pool.submit(self._loop, work, n) for n, work in enumerate(tasks)]
            try:
                while (what := found()) is None and self._continues(futures, began, seconds, steps):
                    time.sleep(_CHECK_SECONDS)
            finally:
                self._over.set()
        for future in futures:
            future.result()
        return what

    def _continues(
        self, futures: Sequence[Future[None]], began: float, seconds: float, steps: int
    ) -> bool:
        """A failed thread ends all: its steps would never be done."""
        passed = time.monotonic() - began
        if passed >= MOST_SECONDS or any(future.done() for future in futures):
            return False
        return passed < seconds or self.done < steps

    def _loop(self, work: Work, number: int) -> None:
        rng = random.Random(number)
        while not self._over.is_set():
            work(rng)

    def feed(self, rng: random.Random) -> None:
        """Keeps the queue short, but not empty."""
        counts = self.store.counts()
        if counts.ready + counts.following > self.most_waiting:
            time.sleep(0.005)
            return
        lanes = [f"lane {rng.randrange(LANES)}" for _ in range(rng.randrange(1, 6))]
        self.store.enqueue([self.job(lane) for lane in lanes])

    def job(self, lane: str) -> NewJob:
        return NewJob(task="t", target=lane)

    def work(self, rng: random.Random) -> None:
        request = ClaimRequest(owner="w", lease_seconds=60.0, demands=(QueueDemand("default", 3),))
        attempts = self.store.claim(request)
        time.sleep(rng.random() * 0.004)
        success = Outcome(kind=OutcomeKind.SUCCESS)
        self.store.finish("w", [AttemptEnd(each, success) for each in attempts])
        self.done += len(attempts)


class Limited(Stress):
    """Claimers of a queue with a limit."""

    def job(self, lane: str) -> NewJob:
        return NewJob(task="t")

    def run(self, seconds: float, steps: int) -> str | None:
        self.store.set_queue_limit("default", Limit(LIMIT))
        return self.run_threads(
            [self.feed, *[self.work] * self.workers], self._too_many, seconds, steps
        )

    def _too_many(self) -> str | None:
        """Judged by the timestamps of the database."""
        rows = self.observer.execute("select leased_at, finished_at from freehold.history")
        changes = [change for began, ended in rows for change in ((began, 1), (ended, -1))]
        live = 0
        for _at, step in sorted(changes):
            live += step
            if live > LIMIT:
                return f"{live} leases under a limit of {LIMIT}"
        return None


class Laned(Stress):
    """Claimers of a few lanes, while new jobs are enqueued into them."""

    def __init__(self, database: PostgresDatabase, workers: int = WORKERS) -> None:
        super().__init__(database, workers)
        self._stuck_since: dict[tuple[str, int], float] = {}

    def run(self, seconds: float, steps: int) -> str | None:
        return self.run_threads(
            [self.feed] * 2 + [self.work] * self.workers, self._stuck, seconds, steps
        )

    def _stuck(self) -> str | None:
        """A lane that stays without a holder while its first job waits to be promoted."""
        rows = self.observer.execute(
            "select target, min(id), (array_agg(stage order by id))[1] from freehold.jobs "
            "group by target having not bool_or(stage in ('lane_head', 'leased'))"
        )
        now = time.monotonic()
        stuck = {(target, first) for target, first, stage in rows if stage == "follower"}
        self._stuck_since = {each: self._stuck_since.get(each, now) for each in stuck}
        for (target, first), since in self._stuck_since.items():
            if now - since > _STUCK_SECONDS:
                return f"{target} is stuck at job {first}"
        return None


class Passed(Stress):
    """Claimers of several lanes at a time, which hold each lane in turn."""

    #: Few, so that most jobs are new: only one that is not yet a follower can overtake.
    most_waiting = 12

    def run(self, seconds: float, steps: int) -> str | None:
        tasks = [self.feed, *[self.work] * self.workers]
        self.observer.execute(OTHERS_END)
        try:
            return self.run_threads(tasks, self._back_in_time, seconds, steps)
        finally:
            self.observer.execute("drop function freehold.others_end()")

    def _back_in_time(self) -> str | None:
        """A later holder of a lane has a larger token, and was leased after the previous end."""
        rows = self.observer.execute(
            "select target, token, former, leased_at, freed_at from ("
            "select target, token, leased_at, lag(token) over lane as former, "
            "lag(finished_at) over lane as freed_at from freehold.history "
            "window lane as (partition by target order by finished_at)) held "
            "where token <= former or leased_at < freed_at limit 1"
        )
        for target, token, former, leased_at, freed_at in rows:
            return f"{target}: {token} after {former}, leased {leased_at}, free {freed_at}"
        return None


class Followed(Stress):
    """A reader follows the events of transactions that commit late."""

    def run(self, seconds: float, steps: int) -> str | None:
        self._at = self._start = self.store.newest_event()
        self._read_events: set[int] = set()
        return self.run_threads([self._act] * self.workers, self._passed_over, seconds, steps)

    def _act(self, rng: random.Random) -> None:
        job_id = self.store.enqueue([NewJob(task="t")])[0].id
        with psycopg.connect(self.database.url) as connection:
            session = self.database.caller_session(connection)
            run(operate(OperatorVerb.PAUSE, [job_id], "ann", None), session)
            time.sleep(rng.random() * 0.03)
        self.done += 1

    def _passed_over(self) -> str | None:
        for event in self.store.events_after(self._at, 1000):
            self._at = event.id
            self._read_events.add(event.id)
        query = "select id from freehold.event where id > %s and id <= %s"
        there = {row[0] for row in self.observer.execute(query, (self._start, self._at))}
        missed = there - self._read_events
        return f"events {sorted(missed)} were passed over" if missed else None


@contextlib.contextmanager
def _watermark_forgets() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queries, "before_first_gap", lambda _after, events, _now: events)
        yield


BUGS: dict[str, tuple[type[Any], Callable[[], contextlib.AbstractContextManager[None]]]] = {
    "a limit is counted before the lock": (Limited, lambda: planted(counted_before_the_lock)),
    "the next is promoted with the ending": (Laned, lambda: planted(promoted_with_the_ending)),
    "a token is drawn before all is won": (
        Passed,
        lambda: planted(drawn_with_the_first_winner),
    ),
    "late commits are forgotten": (Followed, _watermark_forgets),
}


@contextlib.contextmanager
def _stress(kind: type[Any], url: str, workers: int = WORKERS) -> Iterator[Any]:
    """With a database that loads its statements again."""
    database = PostgresDatabase(url, pool_size=WORKERS + 4)
    stress = kind(database, workers)
    try:
        yield stress
    finally:
        stress.observer.close()
        database.close()


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_race_is_found(database: PostgresDatabase, name: str) -> None:
    kind, plant = BUGS[name]
    with plant(), _stress(kind, database.url) as stress:
        assert stress.run(MOST_SECONDS, 0) is not None, f"not found after {stress.done} steps"


@pytest.mark.parametrize("name", BUGS)
def test_one_worker_alone_does_not_show_a_planted_race(
    database: PostgresDatabase, name: str
) -> None:
    """So they are races, not plain bugs."""
    kind, plant = BUGS[name]
    with plant(), _stress(kind, database.url, workers=1) as stress:
        assert stress.run(ALONE_SECONDS, ALONE_STEPS) is None
        assert stress.done >= ALONE_STEPS, "else this proved nothing"


@pytest.mark.requirement("S0.10", "S2.5", "S4.3")
@pytest.mark.parametrize("kind", [Limited, Laned, Passed, Followed])
def test_without_the_bug_the_same_stress_finds_nothing(
    database: PostgresDatabase, kind: type[Any]
) -> None:
    with _stress(kind, database.url) as stress:
        assert stress.run(CLEAN_SECONDS, CLEAN_STEPS) is None
        assert stress.done >= CLEAN_STEPS, "else this proved nothing"
