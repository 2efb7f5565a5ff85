"""A limit of seven over five stores of one database, under 20 claimers, some of which die.

They die with their leases, or in the middle of a claim, because a killer ends their connections.
Judged by the database's own times: what was leased when, and until when it counted.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta

import psycopg
import pytest

from freehold.errors import StoreError
from freehold.model.job import Attempt, NewJob
from freehold.model.limit import ALL_QUEUES, Limit
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.policy import Policy
from freehold.model.retry import Retry
from freehold.model.tenant import HOME_SHARD
from freehold.store.claim_cursor import ClaimCursors
from freehold.store.store import Store
from freehold.store.types import AttemptEnd, ClaimRequest, QueueDemand
from tests.crowd import at_once
from tests.tenants.rooms import Rooms

TENANTS = ("acme", "beta", "gamma", "delta")
CLAIMERS = 20
LIMIT = 7
JOBS_EACH = 80
LEASE_SECONDS = 0.4
DEATH = 0.1
CEILING_SECONDS = 100.0
POLICY = Policy(retry=Retry(base_seconds=0.001, cap_seconds=0.01))


class Crew:
    """Claimers of several stores, until nothing is left in any."""

    def __init__(self, stores: list[Store], url: str) -> None:
        self._stores = stores
        self._url = url
        self._done = threading.Event()
        self._gives_up_at = time.monotonic() + CEILING_SECONDS

    def everybody(self) -> list[Callable[[], None]]:
        return [*[self._claimer(number) for number in range(CLAIMERS)], self._sweep, self._kill]

    def _claimer(self, number: int) -> Callable[[], None]:
        store, memory = self._stores[number % len(self._stores)], ClaimCursors(time.monotonic)
        return lambda: self._work(store, f"w{number}", random.Random(number), memory)

    def _work(self, store: Store, owner: str, chance: random.Random, memory: ClaimCursors) -> None:
        ask = ClaimRequest(
            owner=owner,
            lease_seconds=LEASE_SECONDS,
            wants=(QueueDemand("default", 3),),
            memory=memory,
        )
        while not self._done.is_set():
            try:
                attempts = store.claim(ask)
                if attempts and chance.random() >= DEATH:
                    self._finish(store, owner, attempts, chance)
            except StoreError:
                continue  # the killer
            if not attempts:
                # Think time, as a worker that found nothing has it.
                time.sleep(chance.random() * 0.05)

    def _finish(
        self, store: Store, owner: str, attempts: list[Attempt], chance: random.Random
    ) -> None:
        time.sleep(chance.random() * 0.004)
        endings = [OutcomeKind.SUCCESS] * 9 + [OutcomeKind.ERROR]
        store.finish(
            owner, [AttemptEnd(each, Outcome(kind=chance.choice(endings))) for each in attempts]
        )

    def _sweep(self) -> None:
        """Until every job has ended: only that ends the test, and a wide ceiling."""
        while time.monotonic() < self._gives_up_at and any(map(self._is_busy, self._stores)):
            time.sleep(0.02)
        self._done.set()

    def _is_busy(self, store: Store) -> bool:
        try:
            store.recover(50, 0.5)
            store.make_ready(200)
            counts = store.counts()
        except StoreError:
            return True
        return bool(counts.ready + counts.waiting + counts.leased)

    def _kill(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._done.wait(0.1):
                connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where datname = current_database() and pid <> pg_backend_pid() "
                    "and state <> 'idle' order by random() limit 1"
                )


def most_at_once(url: str, schemas: list[str]) -> int:
    """From when leases began, and when they ended or ran out: the most that ever were live."""
    moments: list[tuple[datetime, int]] = []
    with psycopg.connect(url) as connection:
        for schema in schemas:
            rows = connection.execute(
                f"select leased_at, finished_at from {schema}.history union all "
                f"select leased_at, at from {schema}.event "
                "where leased_at is not null and kind in ('lease_lost', 'retried')".encode()
            ).fetchall()
            assert len(rows) >= JOBS_EACH
            for began, ended in rows:
                runs_out = began + timedelta(seconds=LEASE_SECONDS)
                moments += [(began, 1), (min(ended, runs_out), -1)]
    live = most = 0
    for _at, step in sorted(moments):  # an end before a beginning at the same instant
        live += step
        most = max(most, live)
    return most


@pytest.mark.requirement("S0.10", "P8")
@pytest.mark.parametrize("urls", ["postgres"], indirect=True)
def test_never_eight_over_all_tenants(house: Rooms) -> None:
    for name in TENANTS:
        house.tenancy.create(name)
    control = Store(house.control.session())
    control.set_queue_limit(ALL_QUEUES, Limit(LIMIT))
    stores = [control, *map(house.inside, TENANTS)]
    for store in stores:
        store.enqueue([NewJob(task="t", max_attempts=1000, policy=POLICY)] * JOBS_EACH)

    at_once(Crew(stores, house.urls[HOME_SHARD]).everybody())

    left = [store.counts() for store in stores]
    assert [counts.ready + counts.waiting + counts.leased for counts in left] == [0] * len(stores)
    schemas = ["freehold", *[f"freehold_t_{name}" for name in TENANTS]]
    assert most_at_once(house.urls[HOME_SHARD], schemas) == LIMIT
