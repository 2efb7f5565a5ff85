"""Tenants on both stores, in two places each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psycopg

from leasehold.model.job import NewJob
from leasehold.model.tenant import HOME
from leasehold.store.contract import ClaimAsk, Want
from leasehold.store.database import Database
from leasehold.store.faces import BlockingStore
from leasehold.store.opening import open_database, open_place
from leasehold.tenancy.known import KnownPlaces
from leasehold.tenancy.tenancy import Tenancy

EAST = "east"


@dataclass(frozen=True)
class Rooms:
    """A control store, and two places for tenants."""

    kind: str
    urls: dict[str, str]
    control: Database
    places: KnownPlaces
    tenancy: Tenancy

    def inside(self, tenant: str) -> BlockingStore:
        """The tenant's store, wherever it is."""
        return BlockingStore(self.tenancy.open(tenant).session())

    def at(self, place: str, tenant: str) -> BlockingStore:
        return BlockingStore(self.places[place].open(tenant).session())


@contextmanager
def rooms(urls: dict[str, str]) -> Iterator[Rooms]:
    kind = "postgres" if "://" in urls[HOME] else "sqlite"
    with ExitStack() as stack:
        control = open_database(urls[HOME])
        stack.callback(control.close)
        control.migrate()
        places = KnownPlaces(urls, open_place)
        stack.callback(places.close)
        yield Rooms(kind, urls, control, places, Tenancy(control, places))


def forget_tenants(urls: dict[str, str]) -> None:
    for url in urls.values():
        with psycopg.connect(url, autocommit=True) as connection:
            found = connection.execute(
                "select nspname from pg_namespace where nspname like 'leasehold\\_%'"
            ).fetchall()
            for (schema,) in found:
                connection.execute(f"drop schema {schema} cascade".encode())
            if connection.execute("select to_regclass('leasehold.tenant')").fetchone() != (None,):
                connection.execute(
                    "truncate leasehold.tenant, leasehold.job, leasehold.queue, "
                    "leasehold.lease_bound"
                )


def add(store: BlockingStore, **fields: object) -> int:
    return store.enqueue([NewJob(**{"task": "t", **fields})])[0].id  # type: ignore[arg-type]


def ask(owner: str = "w", count: int = 100, lease_seconds: float = 30.0) -> ClaimAsk:
    return ClaimAsk(owner=owner, lease_seconds=lease_seconds, wants=(Want("default", count),))
