"""A limit of seven over five stores of one database, with 20 claimers, some of which die.

They die while they hold leases, or in the middle of a claim when their connection is killed. The
check uses the database's own timestamps of leases and their ends.
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
from freehold.store.store import Store
from freehold.store.types import AttemptEnd, ClaimRequest, QueueDemand
from freehold.store.verbs.claim import ClaimCursors
from tests.concurrency import run_concurrently
from tests.tenants.tenant_stores import TenantStores

TENANTS = ("acme", "beta", "gamma", "delta")
CLAIMERS = 20
LIMIT = 7
JOBS_EACH = 80
LEASE_SECONDS = 0.4
DEATH = 0.1
CEILING_SECONDS = 100.0
POLICY = Policy(retry=Retry(base_seconds=0.001, cap_seconds=0.01))


class Claimers:
    """Claim from several stores until all jobs have ended."""

    def __init__(self, stores: list[Store], url: str) -> None:
        self._stores = stores
        self._url = url
        self._done = threading.Event()
        self._deadline = time.monotonic() + CEILING_SECONDS

    def threads(self) -> list[Callable[[], None]]:
        return [*[self._claimer(number) for number in range(CLAIMERS)], self._sweep, self._kill]

    def _claimer(self, number: int) -> Callable[[], None]:
        store, cursors = self._stores[number % len(self._stores)], ClaimCursors(time.monotonic)
        return lambda: self._work(store, f"w{number}", random.Random(number), cursors)

    def _work(self, store: Store, owner: str, chance: random.Random, cursors: ClaimCursors) -> None:
        ask = ClaimRequest(
            owner=owner,
            lease_seconds=LEASE_SECONDS,
            demands=(QueueDemand("default", 3),),
        )
        while not self._done.is_set():
            try:
                attempts = store.claim(ask, cursors)
                if attempts and chance.random() >= DEATH:
                    self._finish(store, owner, attempts, chance)
            except StoreError:
                continue  # the connection was killed
            if not attempts:
                # The pause of a worker that found nothing.
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
        """Ends the test when every job has ended, or at the deadline."""
        while time.monotonic() < self._deadline and any(map(self._is_busy, self._stores)):
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


def max_live_leases(url: str, schemas: list[str]) -> int:
    """The largest number of leases that were live at the same time."""
    changes: list[tuple[datetime, int]] = []
    with psycopg.connect(url) as connection:
        for schema in schemas:
            rows = connection.execute(
                f"select leased_at, finished_at from {schema}.history union all "
                f"select leased_at, at from {schema}.event "
                "where leased_at is not null and kind in ('lease_lost', 'retried')".encode()
            ).fetchall()
            assert len(rows) >= JOBS_EACH
            for began, ended in rows:
                expiry = began + timedelta(seconds=LEASE_SECONDS)
                changes += [(began, 1), (min(ended, expiry), -1)]
    live = maximum = 0
    for _at, step in sorted(changes):  # at the same instant, ends come before starts
        live += step
        maximum = max(maximum, live)
    return maximum


@pytest.mark.requirement("S0.10", "P8")
@pytest.mark.parametrize("urls", ["postgres"], indirect=True)
def test_the_limit_is_never_exceeded_over_all_tenants(stores: TenantStores) -> None:
    for name in TENANTS:
        stores.tenants.create(name)
    control = Store(stores.control.session())
    control.set_queue_limit(ALL_QUEUES, Limit(LIMIT))
    all_stores = [control, *map(stores.store_of, TENANTS)]
    for store in all_stores:
        store.enqueue([NewJob(task="t", max_attempts=1000, policy=POLICY)] * JOBS_EACH)

    run_concurrently(Claimers(all_stores, stores.urls[HOME_SHARD]).threads())

    left = [store.counts() for store in all_stores]
    assert [counts.ready + counts.waiting + counts.leased for counts in left] == [0] * len(left)
    schemas = ["freehold", *[f"freehold_t_{name}" for name in TENANTS]]
    assert max_live_leases(stores.urls[HOME_SHARD], schemas) == LIMIT
