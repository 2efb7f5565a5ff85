"""Which tenants of a process have a worker: which wake, which are put to sleep, which are degraded.

    asleep --has work--> waiting --below the limit--> awake --idle, or its slice is over--> asleep
       ^                                                |
       '--- checked again, ever more rarely --- degraded (error)

It only decides; `host.py` starts and drains the workers. Times are those of the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from freehold.model.tenant import Tenant, TenantState
from freehold.store.shard import TenantActivity

#: A worker that was idle for this long ends.
IDLE_SECONDS = 5.0
#: While other tenants wait, a worker with jobs stays awake for at least this long.
SLICE_SECONDS = 2.0
#: A degraded tenant is checked again after a second, then ever more rarely.
FIRST_RETRY_SECONDS = 1.0
LAST_RETRY_SECONDS = 60.0
#: A tenant without errors for this long starts with the first interval again.
RESET_RETRY_SECONDS = 60.0


@dataclass(slots=True)
class TenantEntry:
    """One tenant, as this process sees it."""

    tenant: Tenant
    is_served: bool = True
    has_work: bool = False
    was_checked: bool = False
    waiting_since: float | None = None
    awake_since: float | None = None
    idle_since: float | None = None
    is_ending: bool = False
    error: str | None = None
    retry_seconds: float = 0.0
    retry_at: float = 0.0

    def set_state(self, state: TenantState) -> None:
        """What this process has found out before the directory shows it."""
        if self.tenant.state is not state:
            self.tenant = msgspec.structs.replace(self.tenant, state=state)


@dataclass(frozen=True, slots=True)
class WorkerActivity:
    """What a tenant's worker is doing."""

    is_idle: bool
    has_running_jobs: bool


class WakeSchedule:
    """``limit`` is the number of tenants that may be awake at once."""

    def __init__(self, limit: int, now: Callable[[], float]) -> None:
        self._limit = limit
        self._now = now
        self._entries: dict[str, TenantEntry] = {}

    def __getitem__(self, tenant: str) -> TenantEntry:
        return self._entries[tenant]

    def __contains__(self, tenant: str) -> bool:
        return tenant in self._entries

    @property
    def entries(self) -> list[TenantEntry]:
        return list(self._entries.values())

    def update(self, tenants: Iterable[Tenant]) -> None:
        """Apply the directory. A tenant that is paused, moving or dropped is no longer served."""
        states = (TenantState.ACTIVE, TenantState.DEGRADED)
        served = {tenant.name: tenant for tenant in tenants if tenant.state in states}
        for entry in self.entries:
            entry.is_served = entry.tenant.name in served
            if not entry.is_served:
                self._remove(entry)
        for name, tenant in served.items():
            entry = self._entries.setdefault(name, TenantEntry(tenant))
            if entry.tenant.shard != tenant.shard and entry.awake_since is not None:
                entry.is_ending = True  # the tenant moved, so its worker has to restart there
            entry.tenant = tenant
            if entry.error is not None:
                entry.set_state(TenantState.DEGRADED)

    def _remove(self, entry: TenantEntry) -> None:
        if entry.awake_since is None:
            del self._entries[entry.tenant.name]
        else:
            entry.is_ending = True

    # -- checks ------------------------------------------------------------------------------

    def due_for_check(self, shard: str) -> list[str]:
        now = self._now()
        return [
            name
            for name, entry in self._entries.items()
            if entry.tenant.shard == shard
            and entry.is_served
            and (entry.error is None or now >= entry.retry_at)
        ]

    def record_check(self, activity: TenantActivity) -> bool:
        """A check without error. Returns whether the tenant was degraded before."""
        entry = self._entries.get(activity.tenant)
        if entry is None:
            return False
        was_degraded = entry.tenant.state is TenantState.DEGRADED
        entry.set_state(TenantState.ACTIVE)
        entry.was_checked, entry.has_work, entry.error = True, activity.has_work, None
        if self._now() > entry.retry_at + RESET_RETRY_SECONDS:
            entry.retry_seconds = 0.0
        if activity.has_work:
            self.request_worker(activity.tenant)
        return was_degraded

    def request_worker(self, tenant: str) -> None:
        """The tenant has work. If it waits already, it keeps its position."""
        entry = self._entries.get(tenant)
        if entry is None or entry.error is not None or entry.waiting_since is not None:
            return
        if entry.awake_since is None or entry.is_ending:
            entry.waiting_since = self._now()

    def record_error(self, tenant: str, error: str) -> bool:
        """Stop serving the tenant for a while. Returns whether it was not degraded before."""
        entry = self._entries.get(tenant)
        if entry is None:
            return False
        is_new = entry.tenant.state is not TenantState.DEGRADED
        entry.set_state(TenantState.DEGRADED)
        doubled = max(FIRST_RETRY_SECONDS, 2 * entry.retry_seconds)
        entry.retry_seconds = min(doubled, LAST_RETRY_SECONDS)
        entry.retry_at = self._now() + entry.retry_seconds
        entry.was_checked, entry.has_work = True, False
        entry.error, entry.waiting_since = error, None
        entry.is_ending = entry.awake_since is not None
        return is_new

    # -- waking ------------------------------------------------------------------------------

    def wake(self) -> list[Tenant]:
        """The tenants that get a worker now, in the order in which they asked for one."""
        free = self._limit - sum(entry.awake_since is not None for entry in self.entries)
        chosen = self._waiting()[: max(0, free)]
        for entry in chosen:
            entry.waiting_since, entry.awake_since, entry.idle_since = None, self._now(), None
        return [entry.tenant for entry in chosen]

    def _waiting(self) -> list[TenantEntry]:
        waiting = [
            (entry.waiting_since, entry.tenant.name, entry)
            for entry in self._entries.values()
            if entry.waiting_since is not None and entry.awake_since is None
        ]
        return [entry for *_, entry in sorted(waiting, key=lambda each: each[:2])]

    # -- ending ------------------------------------------------------------------------------

    def to_end(self, activity_of: Callable[[str], WorkerActivity]) -> list[str]:
        """The tenants whose worker has to end: no longer served, idle, or in the way of others."""
        now = self._now()
        candidates: list[tuple[bool, float, TenantEntry]] = []
        for name, entry in self._entries.items():
            if entry.awake_since is None:
                continue
            activity = activity_of(name)
            if entry.is_ending:
                continue
            if not activity.is_idle:
                entry.idle_since = None
            elif entry.idle_since is None:
                entry.idle_since = now
            # With ready jobs that no task here can run, it stays: the next check may find others.
            if entry.idle_since is not None and not entry.has_work:
                entry.is_ending = now - entry.idle_since >= IDLE_SECONDS
            had_its_slice = activity.is_idle or now - entry.awake_since >= SLICE_SECONDS
            if not activity.has_running_jobs and had_its_slice:
                candidates.append((not activity.is_idle, entry.awake_since, entry))
        for *_, entry in sorted(candidates, key=lambda each: each[:2])[: self._missing()]:
            entry.is_ending = True
        return [name for name, entry in self._entries.items() if entry.is_ending]

    def _missing(self) -> int:
        """How many tenants wait beyond those that can wake now or as soon as others have ended."""
        staying = sum(
            entry.awake_since is not None and not entry.is_ending
            for entry in self._entries.values()
        )
        return max(0, staying + len(self._waiting()) - self._limit)

    def worker_ended(self, tenant: str) -> None:
        entry = self._entries[tenant]
        entry.awake_since, entry.is_ending = None, False
        if not entry.is_served:
            self._remove(entry)
        elif entry.has_work:
            self.request_worker(tenant)

    @property
    def is_quiet(self) -> bool:
        """All tenants were checked, and none waits for a worker."""
        return all(entry.was_checked for entry in self.entries) and not self._waiting()
