"""Moving a tenant to another shard, in steps.

    mark      the directory records the move and its target shard
    pause     claims are paused in the old shard, until nothing is leased there
    retire    the tables in the old shard get other names: a late process finds and writes nothing
    copy      all or nothing, without the pause of the move
    switch    the directory records the new shard
    clean up  the retired tables are dropped

A process that dies between two steps leaves a state from which the same command continues. Until
the switch all data is in the old shard, and a move to that shard cancels the move.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from freehold.clock import monotonic
from freehold.errors import Refused, StoreUnavailable, TenantExists
from freehold.model.explain import PauseInfo
from freehold.model.limit import ALL_QUEUES
from freehold.model.tenant import Tenant, TenantState
from freehold.store.shard import MOVER, MovableShard
from freehold.store.store import Store
from freehold.tenants.directory_cache import get_tenant
from freehold.tenants.shards import Shards

_RETRY_SECONDS = 0.1
_RECOVER_LIMIT = 500


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
        self._tenant: Tenant = directory.run(get_tenant(name))
        self._source: MovableShard = shards[self._tenant.shard]
        self._goal: MovableShard = shards[to]

    def steps(self) -> Iterator[str]:
        """Run the steps one after another. Yields the name of each when it is done."""
        with self._source.move_lock(self._name) as is_locked:
            if not is_locked:
                raise Refused(f"another move from {self._source.shown} is running: try again later")
            yield from self._cancel() if self._to == self._tenant.shard else self._move()

    # -- forward -----------------------------------------------------------------------------

    def _move(self) -> Iterator[str]:
        self._mark()
        yield "mark"
        if not self._source.is_retired(self._name):
            self._pause_claims()
            yield "pause"
            self._retire()
            yield "retire"
        self._goal.copy_from(self._name, self._source)
        yield "copy"
        state, note = self._state_in(self._goal)
        if not self._directory.end_move(self._name, self._to, state, note):
            raise Refused(
                f"tenant {self._name} is no longer moving to {self._to}: see `freehold tenants`"
            )
        yield "switch"
        self._source.drop_retired(self._name)
        self._directory.clear_move(self._name)
        yield "clean up"

    def _mark(self) -> None:
        if self._tenant.state is not TenantState.MOVING and self._goal.holds(self._name):
            raise TenantExists(
                f"{self._goal.shown} already has a tenant {self._name}: drop that one first"
            )
        if not self._source.is_retired(self._name):
            self._source.open(
                self._name
            ).migrate()  # both sides of the copy need the same schema version
        if not self._directory.begin_move(self._name, self._to, f"moving to {self._to}"):
            raise Refused(
                f"tenant {self._name} is moving to {self._tenant.moving_to}: finish that move, or "
                f"cancel it by a move to {self._tenant.shard}, first"
            )

    def _pause_claims(self) -> None:
        """A pause by an operator stays, and moves with the tenant."""
        store = Store(self._source.open(self._name).session())
        if _pause_of_all(store) is None:
            store.pause_queue(ALL_QUEUES, MOVER, f"moving to {self._to}", None)
        while store.recover(_RECOVER_LIMIT, 0.5):
            pass

    def _retire(self) -> None:
        """Wait until nothing is leased and no transaction on the tenant's tables is open."""
        deadline = monotonic() + self._timeout_seconds
        why = "it has running jobs"
        while True:
            try:
                if self._source.retire(self._name):
                    return
            except StoreUnavailable as busy:
                why = str(busy)
            if monotonic() >= deadline:
                for _ in self._cancel():
                    pass
                raise StoreUnavailable(
                    f"tenant {self._name} was not moved within {self._timeout_seconds:g} s: {why}; "
                    "the move was undone: try again later, or with a longer --timeout"
                )
            time.sleep(_RETRY_SECONDS)
            self._pause_claims()

    # -- back --------------------------------------------------------------------------------

    def _cancel(self) -> Iterator[str]:
        copied_to = self._directory.cancel_move(self._name, "moving back")
        yield "mark"
        if copied_to is not None:
            self._shards[copied_to].drop(self._name)
        yield "drop copy"
        self._source.restore(self._name)
        yield "restore"
        store = Store(self._source.open(self._name).session())
        if (pause := _pause_of_all(store)) is not None and pause.by == MOVER:
            store.resume_queue(ALL_QUEUES)
        yield "resume"
        self._directory.end_move(self._name, self._tenant.shard, *self._state_in(self._source))
        yield "switch"

    def _state_in(self, shard: MovableShard) -> tuple[TenantState, str | None]:
        """Paused if an operator has paused it."""
        pause = _pause_of_all(Store(shard.open(self._name).session()))
        if pause is None:
            return TenantState.ACTIVE, None
        return TenantState.PAUSED, f"{pause.by}: {pause.reason}" if pause.reason else pause.by


def _pause_of_all(store: Store) -> PauseInfo | None:
    found = [rules.pause for rules in store.queue_rules(ALL_QUEUES) if rules.name == ALL_QUEUES]
    return found[0] if found else None
