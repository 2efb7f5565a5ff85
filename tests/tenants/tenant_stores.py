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


def drop_tenants(urls: dict[str, str]) -> None:
    for url in urls.values():
        with psycopg.connect(url, autocommit=True) as connection:
            found = connection.execute(
                "select nspname from pg_namespace where nspname like 'freehold\\_%'"
            ).fetchall()
            for (schema,) in found:
                connection.execute(f"drop schema {schema} cascade".encode())
            if connection.execute("select to_regclass('freehold.tenant')").fetchone() != (None,):
                connection.execute(
                    "truncate freehold.tenant, freehold.job, freehold.queue, "
                    "freehold.shared_lease_upper_bound"
                )


def add(store: Store, **fields: object) -> int:
    return store.enqueue([NewJob(**{"task": "t", **fields})])[0].id  # type: ignore[arg-type]


def claim_request(owner: str = "w", count: int = 100, lease_seconds: float = 30.0) -> ClaimRequest:
    return ClaimRequest(
        owner=owner, lease_seconds=lease_seconds, demands=(QueueDemand("default", count),)
    )
