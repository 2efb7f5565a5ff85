"""What can be done with tenants: the directory and the places put together."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from freehold.errors import BadInput, FreeholdError, Refused, SchemaMissing, TenantExists
from freehold.model.job_log import check_reason
from freehold.model.limit import ALL_QUEUES
from freehold.model.names import check_key
from freehold.model.tenant import HOME_SHARD, Tenant, TenantState, check_tenant
from freehold.store.database import Database
from freehold.store.store import Store
from freehold.store.types import JobCounts
from freehold.store.verbs.tenant_directory import check_room_for_tenants
from freehold.tenants.directory_cache import DirectoryCache, existing
from freehold.tenants.move import TenantMove
from freehold.tenants.served_tenants import ServedTenants
from freehold.tenants.shards import Shards
from freehold.tenants.tenant_database import TenantDatabase


class TenantMigration(msgspec.Struct, frozen=True):
    """How the migration of one tenant went."""

    tenant: str
    applied: int
    trouble: str | None = None


class Tenants:
    """The tenants of one control store."""

    def __init__(self, control: Database, places: Shards) -> None:
        self._control = control
        self._store = Store(control.session())
        self._lookup = DirectoryCache(control)
        self.places = places

    # -- reading -----------------------------------------------------------------------------

    def all(self) -> list[Tenant]:
        return self._store.tenants()

    def get(self, name: str) -> Tenant:
        """Raises TenantNotFound with the nearest names."""
        return self._store.run(existing(name))

    def open(self, name: str) -> TenantDatabase:
        """Its database, wherever it lives; looked for when it is used."""
        return TenantDatabase(check_tenant(name), self._lookup, self.places)

    def served(self, names: Collection[str] | None = None) -> ServedTenants:
        """All of them, or those that are named, for a process that runs their jobs."""
        return ServedTenants(self._control, self.places, names)

    def _inside(self, line: Tenant) -> Store:
        return Store(self.places[line.place].open(line.name).session())

    # -- coming and going --------------------------------------------------------------------

    def create(
        self, name: str, place: str = HOME_SHARD, weight: float = 1.0, max_slots: int | None = None
    ) -> Tenant:
        """The schema first, then the line in the directory: a creation that died in between is
        not seen by anybody, and can be repeated."""
        check_tenant(name)
        _check_share(weight, max_slots)
        if self._store.tenant(name) is not None:
            raise TenantExists(f"there is a tenant {name} already: choose another name")
        self._store.run(check_room_for_tenants())
        self.places[place].create(name)
        line = self._store.add_tenant(name, place, weight, max_slots)
        if line is None:
            raise TenantExists(f"there is a tenant {name} already: somebody else has made it")
        return line

    def drop(self, name: str, *, force: bool = False) -> None:
        """The line goes last, so that a drop that died in between can be repeated."""
        line = self._settled(name)
        if not force and (live := self._live(line)):
            raise Refused(
                f"tenant {name} has {live} live jobs: let them end or cancel them, or drop it "
                "with --force, which loses them"
            )
        self._clean_up(line)
        self.places[line.place].drop(name)
        self._store.remove_tenant(name)

    def _live(self, line: Tenant) -> int:
        try:
            counts = self._inside(line).counts()
        except SchemaMissing:  # there is nothing, or nothing that could be asked
            return 0
        return sum(getattr(counts, field) for field in JobCounts.__struct_fields__)

    def _settled(self, name: str) -> Tenant:
        line = self.get(name)
        if line.state is TenantState.MOVING:
            raise Refused(
                f"tenant {name} is on its way from {line.place} to {line.moving_to}: end that with "
                f"`freehold tenants move {name} {line.moving_to}`, or take it back with "
                f"`freehold tenants move {name} {line.place}`"
            )
        return line

    # -- how it stands -----------------------------------------------------------------------

    def pause(self, name: str, by: str, reason: str | None = None) -> None:
        """Nothing of it is claimed, by whichever worker; what runs goes on."""
        check_key("by", by)
        check_reason(reason)
        line = self._settled(name)
        self._inside(line).pause_queue(ALL_QUEUES, by, reason, None)
        note = f"{by}: {reason}" if reason else by
        self._set_state(name, TenantState.PAUSED, note)

    def resume(self, name: str) -> bool:
        """Also one that was left alone because it was broken. Answers whether it stood still."""
        line = self._settled(name)
        was_paused = self._inside(line).resume_queue(ALL_QUEUES)
        self._set_state(name, TenantState.ACTIVE, None)
        return was_paused or line.state is not TenantState.ACTIVE

    def _set_state(self, name: str, state: TenantState, note: str | None) -> None:
        if not self._store.set_tenant_state(name, state, note):
            self._settled(name)  # says why not
            raise Refused(f"tenant {name} has changed meanwhile: look again")

    def weigh(self, name: str, weight: float, max_slots: int | None = None) -> None:
        """Its share of the workers beside 1 for every other, and its slots in one process."""
        _check_share(weight, max_slots)
        self.get(name)
        self._store.set_tenant_share(name, weight, max_slots)

    def migrate(self) -> list[TenantMigration]:
        """Each for itself: one that fails is told, and the others go on."""
        return [self.migrate_one(line) for line in self.all()]

    def migrate_one(self, line: Tenant) -> TenantMigration:
        if line.state is TenantState.MOVING:
            return TenantMigration(line.name, 0, f"it is being moved to {line.moving_to}")
        try:
            applied = self.places[line.place].open(line.name).migrate()
        except FreeholdError as error:
            return TenantMigration(line.name, 0, str(error))
        return TenantMigration(line.name, len(applied))

    # -- moving ------------------------------------------------------------------------------

    def move(self, name: str, place: str, timeout_seconds: float = 60.0) -> Tenant:
        """To another place, losing and doubling nothing. Repeated, it goes on where it stopped;
        to the place where the tenant still is, it takes a begun move back."""
        for _ in self.moving(name, place, timeout_seconds):
            pass
        return self.get(name)

    def moving(self, name: str, place: str, timeout_seconds: float = 60.0) -> Iterator[str]:
        """The same, step by step, for whoever watches: names each when it is done."""
        line = self.get(name)
        self._clean_up(line)
        if line.place == place and line.state is not TenantState.MOVING:
            return  # it has arrived
        yield from TenantMove(self._store, self.places, name, place, timeout_seconds).steps()

    def _clean_up(self, line: Tenant) -> None:
        """What a move that died at its very end has left behind."""
        if line.moved_from is not None and line.state is not TenantState.MOVING:
            self.places[line.moved_from].drop_locked_up(line.name)
            self._store.forget_move(line.name)


def _check_share(weight: float, max_slots: int | None) -> None:
    if not 0.001 <= weight <= 1_000_000:
        raise BadInput(f"weight={weight!r}: give a number from 0.001 to 1000000")
    if max_slots is not None and not 1 <= max_slots <= 10_000:
        raise BadInput(f"max_slots={max_slots!r}: give 1 to 10000")
