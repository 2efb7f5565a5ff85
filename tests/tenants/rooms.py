"""Tenants on both stores, in two places each."""

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
class Rooms:
    """A control store, and two places for tenants."""

    kind: str
    urls: dict[str, str]
    control: Database
    places: Shards
    tenancy: Tenants

    def inside(self, tenant: str) -> Store:
        """The tenant's store, wherever it is."""
        return Store(self.tenancy.open(tenant).session())

    def at(self, place: str, tenant: str) -> Store:
        return Store(self.places[place].open(tenant).session())


@contextmanager
def rooms(urls: dict[str, str]) -> Iterator[Rooms]:
    kind = "postgres" if "://" in urls[HOME_SHARD] else "sqlite"
    with ExitStack() as stack:
        control = open_database(urls[HOME_SHARD])
        stack.callback(control.close)
        control.migrate()
        places = Shards(urls, open_shard)
        stack.callback(places.close)
        yield Rooms(kind, urls, control, places, Tenants(control, places))


def forget_tenants(urls: dict[str, str]) -> None:
    for url in urls.values():
        with psycopg.connect(url, autocommit=True) as connection:
            found = connection.execute(
                "select nspname from pg_namespace where nspname like 'freehold\\_%'"
            ).fetchall()
            for (schema,) in found:
                connection.execute(f"drop schema {schema} cascade".encode())
            if connection.execute("select to_regclass('freehold.tenant')").fetchone() != (None,):
                connection.execute(
                    "truncate freehold.tenant, freehold.job, freehold.queue, freehold.lease_bound"
                )


def add(store: Store, **fields: object) -> int:
    return store.enqueue([NewJob(**{"task": "t", **fields})])[0].id  # type: ignore[arg-type]


def ask(owner: str = "w", count: int = 100, lease_seconds: float = 30.0) -> ClaimRequest:
    return ClaimRequest(
        owner=owner, lease_seconds=lease_seconds, wants=(QueueDemand("default", count),)
    )
