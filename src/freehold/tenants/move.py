"""A tenant on its way to another place.

    mark      the directory says: moving, and where to
    hold      claims are paused at the old place, until nothing is leased there any more
    lock up   whoever comes late to the old place finds nothing, and writes nothing
    copy      all or nothing; what arrives is not paused by us any more
    flip      the directory says: it lives there
    clean up  what is locked up at the old place goes

A process that dies between two of these leaves a state from which the same command goes on. Until
the flip everything is at the old place, and a move to where the tenant is takes it all back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from freehold.clock import monotonic
from freehold.errors import Refused, StoreUnavailable, TenantExists
from freehold.model.explain import PauseInfo
from freehold.model.limit import ALL_QUEUES
from freehold.model.tenant import Tenant, TenantState
from freehold.store.movable_shard import MOVER, MovableShard
from freehold.store.store import Store
from freehold.tenants.directory_cache import existing
from freehold.tenants.shards import Shards

_LOOK_SECONDS = 0.1
_RECOVER_LIMIT = 500


class TenantMove:
    """One tenant, to one place."""

    def __init__(
        self,
        directory: Store,
        places: Shards,
        name: str,
        to: str,
        timeout_seconds: float,
    ) -> None:
        self._directory = directory
        self._places = places
        self._name = name
        self._to = to
        self._timeout_seconds = timeout_seconds
        self._line: Tenant = directory.run(existing(name))
        self._source: MovableShard = places[self._line.place]
        self._goal: MovableShard = places[to]

    def steps(self) -> Iterator[str]:
        """Does them, one after another; names each when it is done."""
        with self._source.alone(self._name) as is_alone:
            if not is_alone:
                raise Refused(f"another move from {self._source.shown} is under way: try later")
            yield from self._take_back() if self._to == self._line.place else self._forth()

    # -- there -------------------------------------------------------------------------------

    def _forth(self) -> Iterator[str]:
        self._mark()
        yield "mark"
        if not self._source.is_locked_up(self._name):
            self._hold()
            yield "hold"
            self._lock_up()
            yield "lock up"
        self._goal.take_over(self._name, self._source)
        yield "copy"
        state, note = self._standing(self._goal)
        if not self._directory.end_move(self._name, self._to, state, note):
            raise Refused(f"tenant {self._name} is not moving to {self._to} any more: look again")
        yield "flip"
        self._source.drop_locked_up(self._name)
        self._directory.forget_move(self._name)
        yield "clean up"

    def _mark(self) -> None:
        if self._line.state is not TenantState.MOVING and self._goal.holds(self._name):
            raise TenantExists(
                f"{self._goal.shown} has a tenant {self._name} already: drop that one first"
            )
        if not self._source.is_locked_up(self._name):
            self._source.open(self._name).migrate()  # both sides of the copy are of one version
        if not self._directory.begin_move(self._name, self._to, f"moving to {self._to}"):
            raise Refused(
                f"tenant {self._name} is on its way to {self._line.moving_to}: move it there, or "
                f"back to {self._line.place}, first"
            )

    def _hold(self) -> None:
        store = Store(self._source.open(self._name).session())
        self._pause(store)
        while store.recover(_RECOVER_LIMIT, 0.5):
            pass

    def _pause(self, store: Store) -> None:
        """Unless a person has: that pause goes along, and stays."""
        if _pause_of_all(store) is None:
            store.pause_queue(ALL_QUEUES, MOVER, f"moving to {self._to}", None)

    def _lock_up(self) -> None:
        """As soon as nothing is leased. Who holds a transaction open is waited for too."""
        deadline = monotonic() + self._timeout_seconds
        why = "it has jobs that run"
        while True:
            try:
                if self._source.lock_up(self._name):
                    return
            except StoreUnavailable as busy:
                why = str(busy)
            if monotonic() >= deadline:
                for _ in self._take_back():
                    pass
                raise StoreUnavailable(
                    f"tenant {self._name} was not moved within {self._timeout_seconds:g} s: {why}; "
                    "it is as before: try again later, or with a longer --timeout"
                )
            time.sleep(_LOOK_SECONDS)
            self._hold()

    # -- and back ----------------------------------------------------------------------------

    def _take_back(self) -> Iterator[str]:
        copied_to = self._directory.take_back_move(self._name, "moving back")
        yield "mark"
        if copied_to is not None:
            self._places[copied_to].drop(self._name)
        yield "drop the copy"
        self._source.let_out(self._name)
        yield "let out"
        store = Store(self._source.open(self._name).session())
        if (pause := _pause_of_all(store)) is not None and pause.by == MOVER:
            store.resume_queue(ALL_QUEUES)
        yield "go on"
        self._directory.end_move(self._name, self._line.place, *self._standing(self._source))
        yield "flip"

    def _standing(self, place: MovableShard) -> tuple[TenantState, str | None]:
        """Paused, if a person has paused it."""
        pause = _pause_of_all(Store(place.open(self._name).session()))
        if pause is None:
            return TenantState.ACTIVE, None
        return TenantState.PAUSED, f"{pause.by}: {pause.reason}" if pause.reason else pause.by


def _pause_of_all(store: Store) -> PauseInfo | None:
    found = [door.pause for door in store.doors(ALL_QUEUES) if door.name == ALL_QUEUES]
    return found[0] if found else None
