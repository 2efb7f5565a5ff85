"""Bugs planted on purpose in the processes that serve many tenants."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from freehold.model.audit import Author
from freehold.model.tenant import TenantState
from freehold.tenants import maintenance
from freehold.tenants.host import TenantHost
from freehold.tenants.tenants import Tenants
from freehold.tenants.wake_schedule import WakeSchedule
from freehold.worker.execution.context import Contexts
from freehold.worker.sweeper import RETENTION_SECONDS
from tests.simulation.bugs import Bug, Plant, code, sql, swapped


def _for_first_tenant(self: Contexts, held: Any) -> Any:
    context = _new_context(self, held)
    context.tenant = context.tenant and "acme"
    return context


def _in_directory_only(self: Tenants, name: str, by: str, _reason: Any = None) -> None:
    self._set_state(name, TenantState.PAUSED, by, Author(by, "python"))


def _end(self: TenantHost, tenant: str, error: str) -> None:
    _degrade(self, tenant, error)
    self.drain()


def _only_unbroken(self: WakeSchedule, shard: str) -> list[str]:
    return [name for name in _due_for_check(self, shard) if self[name].error is None]


@contextlib.contextmanager
def _one_store_for_all() -> Iterator[None]:
    """All tenants get the database that was opened first, as if it were cached by a wrong key."""
    opened: dict[TenantHost, Any] = {}

    def wake(self: TenantHost, tenant: Any) -> None:
        shard = self._shards[tenant.shard]
        assert shard is not None
        database = opened.setdefault(self, shard.open(tenant.name))
        with swapped(shard, "open", lambda _name: database):
            _wake(self, tenant)

    with swapped(TenantHost, "_wake", wake):
        yield


_new_context = Contexts.new
_degrade = TenantHost._degrade
_wake = TenantHost._wake
_due_for_check = WakeSchedule.due_for_check

_BUGS: dict[str, tuple[Plant, tuple[int, ...]]] = {
    "a job runs for another tenant": (
        code(Contexts, "new", _for_first_tenant),
        (6,),
    ),
    "a worker has another tenant's store": (_one_store_for_all, (6,)),
    "a tenant's pause is stored in the directory only": (
        code(Tenants, "pause", _in_directory_only),
        (6,),
    ),
    "a paused tenant is served": (
        sql(("claim", "q.name in (:queue, '*')", "q.name = :queue")),
        (6,),
    ),
    "a broken tenant ends its host": (code(TenantHost, "_degrade", _end), (11,)),
    "a broken tenant is never checked again": (
        code(WakeSchedule, "due_for_check", _only_unbroken),
        (16,),
    ),
    "parked jobs are checked when a host starts, and then after an hour": (
        code(maintenance, "_ROUND_SECONDS", RETENTION_SECONDS),
        (93, 133, 213),
    ),
}
TENANT_BUGS = {name: Bug(name, plant, seeds) for name, (plant, seeds) in _BUGS.items()}
