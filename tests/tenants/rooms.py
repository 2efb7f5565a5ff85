"""Tenants on both stores, in two places each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from leasehold.model.job import NewJob
from leasehold.model.tenant import HOME
from leasehold.store.contract import ClaimAsk, Want
from leasehold.store.database import Database
from leasehold.store.faces import BlockingStore
from leasehold.store.opening import open_database, open_place
from leasehold.tenancy.known import KnownPlaces
from leasehold.tenancy.tenancy import Tenancy
from tests.stores import fresh_database

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
def rooms(kind: str, server_url: str, folder: Path) -> Iterator[Rooms]:
    with ExitStack() as stack:
        if kind == "postgres":
            urls = {name: stack.enter_context(fresh_database(server_url)) for name in (HOME, EAST)}
        else:
            (folder / EAST).mkdir()
            urls = {HOME: str(folder / "jobs.db"), EAST: str(folder / EAST / "jobs.db")}
        control = open_database(urls[HOME])
        stack.callback(control.close)
        control.migrate()
        places = KnownPlaces(urls, open_place)
        stack.callback(places.close)
        yield Rooms(kind, urls, control, places, Tenancy(control, places))


def add(store: BlockingStore, **fields: object) -> int:
    return store.enqueue([NewJob(**{"task": "t", **fields})])[0].id  # type: ignore[arg-type]


def ask(owner: str = "w", count: int = 100, lease_seconds: float = 30.0) -> ClaimAsk:
    return ClaimAsk(owner=owner, lease_seconds=lease_seconds, wants=(Want("default", count),))
