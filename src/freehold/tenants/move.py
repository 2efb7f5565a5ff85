"""Moving a tenant to another shard, in steps.

    mark      the directory records the move and its target shard
    pause     claims are paused in the old shard, until nothing is leased there
    retire    the tables in the old shard get other names: a late process finds and writes nothing
    copy      all or nothing, and retired as well: no process finds the copy
    switch    the directory records the new shard; from now on the move cannot be canceled
    restore   the tables in the tenant's shard get their own names again
    resume    the mover's pause ends
    end       the directory records that the tenant does not move any more
    clean up  the retired tables in the other shard are dropped

The invariant: at most one shard has the tenant under its own name. Processes use rows of the
directory that are seconds old, or older while the directory is unreachable. Such a process finds
the tenant or nothing, but never a copy that is still to be dropped.

A process that dies between two steps leaves a state from which the same command continues. Until
the switch all data is in the old shard, and a move to that shard cancels the move: the directory
records that the tenant moves to where it is, and the steps from `restore` on are the same.

    step              state   shard  moving_to  moved_from
    mark ... copy     moving  old    new
    switch ... resume moving  new    new        old
    canceled          moving  old    old        new
    end               active  new               old         after a cancellation: old, new
    clean up          active  new

A mover holds the lock of the tenant's shard, and of the target too, because the switch makes that
the tenant's shard. It reads the directory after locking: no two movers act on one tenant.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from freehold.clock import monotonic
from freehold.errors import Refused, StoreUnavailable
from freehold.model.limit import ALL_QUEUES
from freehold.model.tenant import Tenant, TenantState
from freehold.store.shard import MOVER, MovableShard, already_has
from freehold.store.store import Store
from freehold.tenants.directory_cache import get_tenant
from freehold.tenants.shards import Shards

_RETRY_SECONDS = 0.1
_RECOVER_LIMIT = 500


@contextmanager
def locked_tenant(directory: Store, shards: Shards, name: str, *targets: str) -> Iterator[Tenant]:
    """The tenant's row. No other process moves the tenant within the block."""
    shard = directory.run(get_tenant(name)).shard
    with ExitStack() as locks:
        for each in sorted({shard, *targets}):
            if not locks.enter_context(shards[each].move_lock(name)):
                raise Refused(
                    f"another move from or to {shards[each].shown} is running: try again later"
                )
        tenant = directory.run(get_tenant(name))
        if tenant.shard != shard:
            raise Refused(f"another process has just moved {name} to {tenant.shard}: try again")
        yield tenant


def drop_leftovers(directory: Store, shards: Shards, tenant: Tenant) -> None:
    """Drop the retired tables in the other shard. Needs the lock: the next move may put its copy
    there."""
    if tenant.moved_from is not None:
        shards[tenant.moved_from].drop_retired(tenant.name)
        directory.clear_move(tenant.name)


class TenantMove:
    """The move of one tenant to one shard."""

    def __init__(
        self,
        directory: Store,
        shards: Shards,
        name: str,
        to: str,
        timeout_seconds: float,
    ) -> None:
        self._directory = directory
        self._shards = shards
        self._name = name
        self._to = to
        self._timeout_seconds = timeout_seconds

    def steps(self) -> Iterator[str]:
        """Run the steps one after another. Yields the name of each when it is done."""
        with locked_tenant(self._directory, self._shards, self._name, self._to) as tenant:
            if tenant.state is not TenantState.MOVING:
                drop_leftovers(self._directory, self._shards, tenant)
            if self._to != tenant.shard:
                yield from self._move(tenant)
            elif tenant.state is not TenantState.MOVING:
                return  # the move is done
            elif tenant.moving_to != tenant.shard:
                self._cancel(tenant)
                yield "mark"
            yield from self._arrive()

    # -- until the switch --------------------------------------------------------------------

    def _move(self, tenant: Tenant) -> Iterator[str]:
        source, goal = self._shards[tenant.shard], self._shards[self._to]
        self._mark(tenant, source, goal)
        yield "mark"
        if not source.is_retired(self._name):
            self._pause_claims(source)
            yield "pause"
            self._retire(tenant, source)
            yield "retire"
        goal.copy_from(self._name, source)
        yield "copy"
        if not self._directory.switch_move(self._name, self._to):
            raise self._no_longer_moving()
        yield "switch"

    def _mark(self, tenant: Tenant, source: MovableShard, goal: MovableShard) -> None:
        if tenant.state is not TenantState.MOVING and goal.holds(self._name):
            raise already_has(goal, self._name)
        if not source.is_retired(self._name):
            # Both sides of the copy need the same schema version.
            source.open(self._name).migrate()
        if not self._directory.begin_move(self._name, self._to, f"moving to {self._to}"):
            raise Refused(
                f"tenant {self._name} is moving to {tenant.moving_to}: finish that move first, "
                f"or cancel it by a move to {tenant.shard} if that is another shard"
            )

    def _pause_claims(self, source: MovableShard) -> None:
        """A pause by an operator stays, and moves with the tenant."""
        store = Store(source.open(self._name).session())
        if store.pause_of_all() is None:
            store.pause_queue(ALL_QUEUES, MOVER, f"moving to {self._to}", None)
        while store.recover(_RECOVER_LIMIT, 0.5):
            pass

    def _retire(self, tenant: Tenant, source: MovableShard) -> None:
        """Wait until nothing is leased and no transaction on the tenant's tables is open."""
        deadline = monotonic() + self._timeout_seconds
        why = "it has running jobs"
        while True:
            try:
                if source.retire(self._name):
                    return
            except StoreUnavailable as busy:
                why = str(busy)
            if monotonic() >= deadline:
                self._undo(tenant)
                raise StoreUnavailable(
                    f"tenant {self._name} was not moved within {self._timeout_seconds:g} s: {why}; "
                    "the move was undone: try again later, or with a longer --timeout"
                )
            time.sleep(_RETRY_SECONDS)
            self._pause_claims(source)

    def _undo(self, tenant: Tenant) -> None:
        self._cancel(tenant)
        for _ in self._arrive():
            pass

    def _cancel(self, tenant: Tenant) -> None:
        if not self._directory.cancel_move(self._name, tenant.shard, "moving back"):
            raise self._no_longer_moving()

    # -- after the switch, or a cancellation -------------------------------------------------

    def _arrive(self) -> Iterator[str]:
        """The other shard has nothing but retired tables. They are dropped last, when the tenant
        is known to be usable in its shard."""
        tenant = self._directory.run(get_tenant(self._name))
        shard = self._shards[tenant.shard]
        shard.restore(self._name)
        yield "restore"
        store = Store(shard.open(self._name).session())
        if (pause := store.pause_of_all()) is not None and pause.by == MOVER:
            store.resume_queue(ALL_QUEUES)
        yield "resume"
        if not self._directory.end_move(self._name, tenant.shard, *_state_in(store)):
            raise self._no_longer_moving()
        yield "end"
        drop_leftovers(self._directory, self._shards, tenant)
        yield "clean up"

    def _no_longer_moving(self) -> Refused:
        return Refused(
            f"tenant {self._name} is no longer moving to {self._to}: see `freehold tenants`"
        )


def _state_in(store: Store) -> tuple[TenantState, str | None]:
    """Paused if an operator has paused it."""
    pause = store.pause_of_all()
    if pause is None:
        return TenantState.ACTIVE, None
    return TenantState.PAUSED, f"{pause.by}: {pause.reason}" if pause.reason else pause.by
