"""Bugs planted on purpose where one process serves many tenants."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from leasehold.model.tenant import TenantState
from leasehold.tenancy.tenancy import Tenancy
from leasehold.worker import upkeep
from leasehold.worker.host import Host
from leasehold.worker.roster import Roster
from leasehold.worker.sweeper import RETENTION_SECONDS
from leasehold.worker.worker import Worker
from tests.simulation.bugs import Bug, Plant, code, sql, swapped


def _in_the_first_one_s_name(self: Worker, held: Any) -> Any:
    context = _context(self, held)
    context.tenant = context.tenant and "acme"
    return context


def _told_to_the_directory_only(self: Tenancy, name: str, by: str, _reason: Any = None) -> None:
    self._set_state(name, TenantState.PAUSED, by)


def _end(self: Host, tenant: str, why: str) -> None:
    _trouble(self, tenant, why)
    self.drain()


def _only_the_well(self: Roster, place: str) -> list[str]:
    return [name for name in _to_look_at(self, place) if self[name].trouble is None]


@contextlib.contextmanager
def _one_store_for_all() -> Iterator[None]:
    """The database of whoever was opened first, as if it were kept under the wrong key."""
    opened: dict[Host, Any] = {}

    def wake(self: Host, tenant: Any) -> None:
        place = self._places[tenant.place]
        assert place is not None
        database = opened.setdefault(self, place.open(tenant.name))
        with swapped(place, "open", lambda _name: database):
            _wake(self, tenant)

    with swapped(Host, "_wake", wake):
        yield


_context = Worker._context
_trouble = Host._trouble
_wake = Host._wake
_to_look_at = Roster.to_look_at

_BUGS: dict[str, tuple[Plant, tuple[int, ...]]] = {
    "a job runs in another tenant's name": (
        code(Worker, "_context", _in_the_first_one_s_name), (6,),
    ),
    "a worker has another tenant's store": (_one_store_for_all, (6,)),
    "a tenant's pause is told to the directory only": (
        code(Tenancy, "pause", _told_to_the_directory_only), (6,),
    ),
    "a paused tenant is served": (
        sql(("claim", "q.name in (:queue, '*')", "q.name = :queue")), (6,),
    ),
    "a broken tenant ends its host": (code(Host, "_trouble", _end), (11,)),
    "a broken tenant is never looked at again": (
        code(Roster, "to_look_at", _only_the_well), (16,),
    ),
    "jobs put aside are looked for when a host starts, and then after an hour": (
        code(upkeep, "_ROUND_SECONDS", RETENTION_SECONDS), (231,),
    ),
}  # fmt: skip
TENANT_BUGS = {name: Bug(name, plant, seeds) for name, (plant, seeds) in _BUGS.items()}
