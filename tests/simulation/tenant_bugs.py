"""Bugs planted on purpose where one process serves many tenants."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from freehold.model.tenant import TenantState
from freehold.tenants import maintenance
from freehold.tenants.host import TenantHost
from freehold.tenants.tenants import Tenants
from freehold.tenants.wake_schedule import WakeSchedule
from freehold.worker.sweeper import RETENTION_SECONDS
from freehold.worker.worker import Worker
from tests.simulation.bugs import Bug, Plant, code, sql, swapped


def _in_the_first_one_s_name(self: Worker, held: Any) -> Any:
    context = _context(self, held)
    context.tenant = context.tenant and "acme"
    return context


def _told_to_the_directory_only(self: Tenants, name: str, by: str, _reason: Any = None) -> None:
    self._set_state(name, TenantState.PAUSED, by)


def _end(self: TenantHost, tenant: str, why: str) -> None:
    _trouble(self, tenant, why)
    self.drain()


def _only_the_well(self: WakeSchedule, place: str) -> list[str]:
    return [name for name in _to_look_at(self, place) if self[name].trouble is None]


@contextlib.contextmanager
def _one_store_for_all() -> Iterator[None]:
    """The database of whoever was opened first, as if it were kept under the wrong key."""
    opened: dict[TenantHost, Any] = {}

    def wake(self: TenantHost, tenant: Any) -> None:
        place = self._places[tenant.place]
        assert place is not None
        database = opened.setdefault(self, place.open(tenant.name))
        with swapped(place, "open", lambda _name: database):
            _wake(self, tenant)

    with swapped(TenantHost, "_wake", wake):
        yield


_context = Worker._context
_trouble = TenantHost._trouble
_wake = TenantHost._wake
_to_look_at = WakeSchedule.to_look_at

_BUGS: dict[str, tuple[Plant, tuple[int, ...]]] = {
    "a job runs in another tenant's name": (
        code(Worker, "_context", _in_the_first_one_s_name),
        (6,),
    ),
    "a worker has another tenant's store": (_one_store_for_all, (6,)),
    "a tenant's pause is told to the directory only": (
        code(Tenants, "pause", _told_to_the_directory_only),
        (6,),
    ),
    "a paused tenant is served": (
        sql(("claim", "q.name in (:queue, '*')", "q.name = :queue")),
        (6,),
    ),
    "a broken tenant ends its host": (code(TenantHost, "_trouble", _end), (11,)),
    "a broken tenant is never looked at again": (
        code(WakeSchedule, "to_look_at", _only_the_well),
        (16,),
    ),
    "jobs put aside are looked for when a host starts, and then after an hour": (
        code(maintenance, "_ROUND_SECONDS", RETENTION_SECONDS),
        (231,),
    ),
}
TENANT_BUGS = {name: Bug(name, plant, seeds) for name, (plant, seeds) in _BUGS.items()}
