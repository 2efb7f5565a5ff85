"""A control store with two shards, on each kind of store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psycopg

from freehold.model.job import NewJob
from freehold.model.tenant import HOME_SHARD
from freehold.store.database import Database
from freehold.store.open import open_database, open_shard
from freehold.store.store import Store
from freehold.store.types import ClaimRequest, QueueDemand
from freehold.tenants.shards import Shards
from freehold.tenants.tenants import Tenants
from tests.database_pool import CONTROL, clean, drop_schemas, empty, fingerprints

EAST = "east"


@dataclass(frozen=True)
class TenantStores:
    """A control store, its shards, and its tenants."""

    kind: str
    urls: dict[str, str]
    control: Database
    shards: Shards
    tenants: Tenants

    def store_of(self, tenant: str) -> Store:
        """The tenant's store, in whichever shard it is."""
        return Store(self.tenants.open(tenant).session())

    def store_in(self, shard: str, tenant: str) -> Store:
        return Store(self.shards[shard].open(tenant).session())


@contextmanager
def open_stores(urls: dict[str, str]) -> Iterator[TenantStores]:
    kind = "postgres" if "://" in urls[HOME_SHARD] else "sqlite"
    with ExitStack() as stack:
        control = open_database(urls[HOME_SHARD])
        stack.callback(control.close)
        control.migrate()
        shards = Shards(urls, open_shard)
        stack.callback(shards.close)
        yield TenantStores(kind, urls, control, shards, Tenants(control, shards))


class TwoDatabases:
    """On one server: like two servers, because a session cannot reach the other database."""

    def __init__(self, home: str, east: str) -> None:
        self.urls = {HOME_SHARD: home, EAST: east}
        database = open_database(home)
        database.migrate()
        database.close()
        with psycopg.connect(home) as connection:
            self._known = fingerprints(connection)

    def clean(self) -> None:
        """Where tenants are created, their empty schemas stay, see `database_pool`. A move into the
        other database must find none."""
        with psycopg.connect(self.urls[EAST], autocommit=True) as connection:
            drop_schemas(connection, f"^{CONTROL}_")
            empty(connection, CONTROL)
        with psycopg.connect(self.urls[HOME_SHARD], autocommit=True) as connection:
            if not clean(connection, self._known):
                drop_schemas(connection, f"^{CONTROL}")


def add(store: Store, **fields: object) -> int:
    return store.enqueue([NewJob(**{"task": "t", **fields})])[0].id  # type: ignore[arg-type]


def claim_request(owner: str = "w", count: int = 100, lease_seconds: float = 30.0) -> ClaimRequest:
    return ClaimRequest(
        owner=owner, lease_seconds=lease_seconds, demands=(QueueDemand("default", count),)
    )
