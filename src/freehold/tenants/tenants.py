"""Managing tenants: create, pause, set weights, migrate, move, drop."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from freehold.errors import BadInput, FreeholdError, Refused, SchemaMissing, TenantExists
from freehold.model.audit import OPERATOR, PYTHON, Author
from freehold.model.limit import ALL_QUEUES
from freehold.model.names import check_key, check_reason
from freehold.model.tenant import HOME_SHARD, Tenant, TenantState, check_tenant
from freehold.store.database import Database
from freehold.store.store import Store
from freehold.store.verbs.tenant_directory import check_room_for_tenants
from freehold.tenants.directory_cache import DirectoryCache, get_tenant
from freehold.tenants.move import TenantMove, drop_leftovers, locked_tenant
from freehold.tenants.served_tenants import ServedTenants
from freehold.tenants.shards import Shards
from freehold.tenants.tenant_database import TenantDatabase

_OPERATOR = Author(OPERATOR, PYTHON)


class TenantMigration(msgspec.Struct, frozen=True):
    """The result of migrating one tenant: migrations applied, or an error."""

    tenant: str
    applied: int
    error: str | None = None


class Tenants:
    """The tenants of one control store, which holds their directory."""

    def __init__(self, control: Database, shards: Shards) -> None:
        self._control = control
        self._directory = Store(control.session())
        self._cache = DirectoryCache(control)
        self.shards = shards

    # -- reading -----------------------------------------------------------------------------

    def all(self) -> list[Tenant]:
        """Every tenant, by name."""
        return self._directory.tenants()

    def get(self, name: str) -> Tenant:
        """Raises TenantNotFound with similar names."""
        return self._directory.run(get_tenant(name))

    async def aget(self, name: str) -> Tenant:
        """The same for asyncio, from a cache of a few seconds."""
        return await self._cache.aget(name)

    def open(self, name: str) -> TenantDatabase:
        """The tenant's database. Its shard is found at first use."""
        return TenantDatabase(check_tenant(name), self._cache, self.shards)

    def served(
        self, names: Collection[str] | None = None, without: Collection[str] = ()
    ) -> ServedTenants:
        """All tenants, or the named ones, for a process that runs their jobs."""
        return ServedTenants(self._control, self.shards, names, without)

    def _store_of(self, tenant: Tenant) -> Store:
        return Store(self.shards[tenant.shard].open(tenant.name).session())

    # -- create and drop ---------------------------------------------------------------------

    def create(
        self,
        name: str,
        shard: str = HOME_SHARD,
        weight: float = 1.0,
        max_slots: int | None = None,
        *,
        author: Author = _OPERATOR,
    ) -> Tenant:
        """Creates the schema first, then the row of the directory: a creation that died in between
        is not visible, and can be repeated."""
        check_tenant(name)
        _check_share(weight, max_slots)
        if self._directory.tenant(name) is not None:
            raise TenantExists(f"tenant {name} exists already: choose another name")
        self._directory.run(check_room_for_tenants())
        self.shards[shard].create(name)
        created = self._directory.add_tenant(name, shard, weight, max_slots, author)
        if created is None:
            raise TenantExists(f"tenant {name} exists already: another process has created it")
        return created

    def drop(self, name: str, *, force: bool = False, author: Author = _OPERATOR) -> None:
        """Removes the row of the directory last, so that a drop that died can be repeated."""
        with locked_tenant(self._directory, self.shards, name) as tenant:
            _check_not_moving(tenant)
            if not self._drop(tenant, force):
                raise Refused(
                    f"tenant {name} has live jobs or schedules: cancel or finish the jobs and drop "
                    "the schedules, or drop the tenant with --force, which loses them"
                )
            drop_leftovers(self._directory, self.shards, tenant)
            self._directory.remove_tenant(name, author)

    def _drop(self, tenant: Tenant, force: bool) -> bool:
        """Checks first without a lock, which would hold up the workers of a busy tenant. The shard
        checks again: a job may have been enqueued meanwhile."""
        if not force and self._has_live_jobs(tenant):
            return False
        return self.shards[tenant.shard].drop(tenant.name, only_if_empty=not force)

    def _has_live_jobs(self, tenant: Tenant) -> bool:
        try:
            return self._store_of(tenant).has_live_jobs()
        except SchemaMissing:  # no table of jobs, so no jobs
            return False

    def _not_moving(self, name: str) -> Tenant:
        tenant = self.get(name)
        _check_not_moving(tenant)
        return tenant

    # -- state -------------------------------------------------------------------------------

    def pause(self, name: str, by: str, reason: str | None = None, via: str = PYTHON) -> None:
        """No worker claims its jobs until it is resumed; running jobs continue."""
        author = Author(check_key("by", by), via, check_reason(reason))
        tenant = self._not_moving(name)
        self._store_of(tenant).pause_queue(ALL_QUEUES, by, reason, None)
        note = f"{by}: {reason}" if reason else by
        self._set_state(name, TenantState.PAUSED, note, author)

    def resume(self, name: str, author: Author = _OPERATOR) -> bool:
        """Resume a paused or degraded tenant. Returns whether it was one."""
        tenant = self._not_moving(name)
        was_paused = self._store_of(tenant).resume_queue(ALL_QUEUES)
        self._set_state(name, TenantState.ACTIVE, None, author)
        return was_paused or tenant.state is not TenantState.ACTIVE

    def _set_state(self, name: str, state: TenantState, note: str | None, author: Author) -> None:
        if not self._directory.set_tenant_state(name, state, note, author=author):
            self._not_moving(name)  # raises if that is why
            raise Refused(f"tenant {name} was changed by another process: try again")

    def set_weight(
        self,
        name: str,
        weight: float,
        max_slots: int | None = None,
        author: Author = _OPERATOR,
    ) -> None:
        """Set the tenant's share of the workers, beside 1 for every other tenant, and the most
        slots that it may use in one process."""
        _check_share(weight, max_slots)
        self.get(name)
        self._directory.set_tenant_share(name, weight, max_slots, author)

    def migrate(self) -> list[TenantMigration]:
        """Migrate each tenant; one that fails does not stop the others."""
        return [self.migrate_one(tenant) for tenant in self.all()]

    def migrate_one(self, tenant: Tenant) -> TenantMigration:
        if tenant.state is TenantState.MOVING:
            return TenantMigration(tenant.name, 0, f"it is being moved to {tenant.moving_to}")
        try:
            applied = self.shards[tenant.shard].open(tenant.name).migrate()
        except FreeholdError as error:
            return TenantMigration(tenant.name, 0, str(error))
        return TenantMigration(tenant.name, len(applied))

    # -- moving ------------------------------------------------------------------------------

    def move(self, name: str, shard: str, timeout_seconds: float = 60.0) -> Tenant:
        """Move the tenant to another shard; no job is lost or doubled. A repeated call continues an
        interrupted move; a call with the old shard cancels it."""
        for _ in self.move_steps(name, shard, timeout_seconds):
            pass
        return self.get(name)

    def move_steps(self, name: str, shard: str, timeout_seconds: float = 60.0) -> Iterator[str]:
        """The same, yielding the name of each step when it is done."""
        tenant = self.get(name)
        if (
            tenant.shard == shard
            and tenant.state is not TenantState.MOVING
            and not tenant.moved_from
        ):
            return  # the move is done
        yield from TenantMove(self._directory, self.shards, name, shard, timeout_seconds).steps()

    def interrupted_moves(self) -> list[str]:
        """A message for each move whose process has died: until it is repeated, no worker serves
        the tenant."""
        return [_interrupted_move(each) for each in self.all() if self._is_interrupted(each)]

    def _is_interrupted(self, tenant: Tenant) -> bool:
        """A live mover holds the lock."""
        if tenant.state is not TenantState.MOVING:
            return False
        with self.shards[tenant.shard].move_lock(tenant.name) as is_free:
            return is_free


def _check_not_moving(tenant: Tenant) -> None:
    if tenant.state is not TenantState.MOVING:
        return
    move = f"freehold tenants move {tenant.name}"
    if tenant.moving_to == tenant.shard:
        raise Refused(
            f"tenant {tenant.name} is moving from {tenant.moved_from} to {tenant.shard}: finish "
            f"the move with `{move} {tenant.shard}`"
        )
    raise Refused(
        f"tenant {tenant.name} is moving from {tenant.shard} to {tenant.moving_to}: finish the "
        f"move with `{move} {tenant.moving_to}`, or cancel it with `{move} {tenant.shard}`"
    )


def _interrupted_move(tenant: Tenant) -> str:
    """A process that died after the switch can only be followed by one that ends the move."""
    return (
        f"tenant {tenant.name} is moving to {tenant.moving_to}, but no process moves it: run "
        f"`freehold tenants move {tenant.name} {tenant.moving_to}`"
    )


def _check_share(weight: float, max_slots: int | None) -> None:
    if not 0.001 <= weight <= 1_000_000:
        raise BadInput(f"weight={weight!r}: give a number from 0.001 to 1000000")
    if max_slots is not None and not 1 <= max_slots <= 10_000:
        raise BadInput(f"max_slots={max_slots!r}: give 1 to 10000")
