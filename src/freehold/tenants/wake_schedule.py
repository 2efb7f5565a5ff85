"""Which tenants of a process are awake: who gets a worker, who goes, and who is left alone.

    asleep --has work--> wanted --a place is free--> awake --idle, or in others' way--> asleep
       ^                                               |
       '------ looked at again, ever more rarely ------'  in trouble

Decisions only: whoever asks also does it. Times are the event loop's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from freehold.model.tenant import Tenant, TenantState
from freehold.store.shard import TenantActivity

#: A worker that has had nothing to do for this long goes.
IDLE_SECONDS = 5.0
#: While others wait for a place, who has something to do keeps its own for at least this long.
SLICE_SECONDS = 2.0
#: What is broken is looked at again after a second, then ever more rarely.
FIRST_RETRY_SECONDS = 1.0
LAST_RETRY_SECONDS = 60.0
#: Trouble that stayed away for this long is forgotten.
FORGIVE_SECONDS = 60.0


@dataclass(slots=True)
class TenantEntry:
    """One tenant, as this process sees it."""

    tenant: Tenant
    is_served: bool = True
    has_work: bool = False
    was_looked_at: bool = False
    wanted_since: float | None = None
    awake_since: float | None = None
    idle_since: float | None = None
    is_going: bool = False
    trouble: str | None = None
    trouble_seconds: float = 0.0
    look_again_at: float = 0.0

    def mark(self, state: TenantState) -> None:
        """What this process has found out, and the directory will soon say."""
        if self.tenant.state is not state:
            self.tenant = msgspec.structs.replace(self.tenant, state=state)


@dataclass(frozen=True, slots=True)
class WorkerActivity:
    """What a tenant's worker is doing."""

    is_idle: bool
    runs_something: bool


class WakeSchedule:
    """``limit``: so many may be awake at a time."""

    def __init__(self, limit: int, now: Callable[[], float]) -> None:
        self._limit = limit
        self._now = now
        self._lines: dict[str, TenantEntry] = {}

    def __getitem__(self, tenant: str) -> TenantEntry:
        return self._lines[tenant]

    def __contains__(self, tenant: str) -> bool:
        return tenant in self._lines

    @property
    def lines(self) -> list[TenantEntry]:
        return list(self._lines.values())

    def update(self, tenants: Iterable[Tenant]) -> None:
        """What the directory says now. Who is paused, moving or gone is served no more."""
        served = (TenantState.ACTIVE, TenantState.DEGRADED)
        serve = {tenant.name: tenant for tenant in tenants if tenant.state in served}
        for line in self.lines:
            line.is_served = line.tenant.name in serve
            if not line.is_served:
                self._dismiss(line)
        for name, tenant in serve.items():
            line = self._lines.setdefault(name, TenantEntry(tenant))
            if line.tenant.place != tenant.place and line.awake_since is not None:
                line.is_going = True  # it has moved: its worker must follow
            line.tenant = tenant
            if line.trouble is not None:
                line.mark(TenantState.DEGRADED)

    def _dismiss(self, line: TenantEntry) -> None:
        if line.awake_since is None:
            del self._lines[line.tenant.name]
        else:
            line.is_going = True

    # -- what is seen ------------------------------------------------------------------------

    def to_look_at(self, place: str) -> list[str]:
        now = self._now()
        return [
            name
            for name, line in self._lines.items()
            if line.tenant.place == place
            and line.is_served
            and (line.trouble is None or now >= line.look_again_at)
        ]

    def looked(self, seen: TenantActivity) -> bool:
        """It is well, and has something to do or not. Whether that it is well is news."""
        line = self._lines.get(seen.tenant)
        if line is None:
            return False
        is_news = line.tenant.state is TenantState.DEGRADED
        line.mark(TenantState.ACTIVE)
        line.was_looked_at, line.has_work, line.trouble = True, seen.has_work, None
        if self._now() > line.look_again_at + FORGIVE_SECONDS:
            line.trouble_seconds = 0.0
        if seen.has_work:
            self.want(seen.tenant)
        return is_news

    def want(self, tenant: str) -> None:
        """There is something to do. Who waits for a place keeps its turn."""
        line = self._lines.get(tenant)
        if line is None or line.trouble is not None or line.wanted_since is not None:
            return
        if line.awake_since is None or line.is_going:
            line.wanted_since = self._now()

    def trouble(self, tenant: str, why: str) -> bool:
        """Leave it alone for a while. Whether this is news."""
        line = self._lines.get(tenant)
        if line is None:
            return False
        is_news = line.tenant.state is not TenantState.DEGRADED
        line.mark(TenantState.DEGRADED)
        doubled = max(FIRST_RETRY_SECONDS, 2 * line.trouble_seconds)
        line.trouble_seconds = min(doubled, LAST_RETRY_SECONDS)
        line.look_again_at = self._now() + line.trouble_seconds
        line.was_looked_at, line.has_work, line.trouble, line.wanted_since = True, False, why, None
        line.is_going = line.awake_since is not None
        return is_news

    # -- who comes ---------------------------------------------------------------------------

    def wake(self) -> list[Tenant]:
        """Who gets a worker now: in the order in which they came."""
        free = self._limit - sum(line.awake_since is not None for line in self._lines.values())
        chosen = self._waiting()[: max(0, free)]
        for line in chosen:
            line.wanted_since, line.awake_since, line.idle_since = None, self._now(), None
        return [line.tenant for line in chosen]

    def _waiting(self) -> list[TenantEntry]:
        waiting = [
            (line.wanted_since, line.tenant.name, line)
            for line in self._lines.values()
            if line.wanted_since is not None and line.awake_since is None
        ]
        return [line for *_, line in sorted(waiting, key=lambda each: each[:2])]

    # -- who goes ----------------------------------------------------------------------------

    def go(self, doing: Callable[[str], WorkerActivity]) -> list[str]:
        """Whose worker should end: those that have to, the idle, and those in others' way."""
        now = self._now()
        settled: list[tuple[bool, float, TenantEntry]] = []
        for name, line in self._lines.items():
            if line.awake_since is None:
                continue
            at_work = doing(name)
            if line.is_going:
                continue
            # Jobs that nobody here can run keep it awake: it may be about to learn otherwise.
            if not at_work.is_idle:
                line.idle_since = None
            elif line.idle_since is None:
                line.idle_since = now
            if line.idle_since is not None and not line.has_work:
                line.is_going = now - line.idle_since >= IDLE_SECONDS
            has_had_its_turn = at_work.is_idle or now - line.awake_since >= SLICE_SECONDS
            if not at_work.runs_something and has_had_its_turn:
                settled.append((not at_work.is_idle, line.awake_since, line))
        for *_, line in sorted(settled, key=lambda each: each[:2])[: self._missing()]:
            line.is_going = True
        return [name for name, line in self._lines.items() if line.is_going]

    def _missing(self) -> int:
        """How many places are wanted beyond those that are free, or will be in a moment."""
        staying = sum(
            line.awake_since is not None and not line.is_going for line in self._lines.values()
        )
        return max(0, staying + len(self._waiting()) - self._limit)

    def gone(self, tenant: str) -> None:
        """Its worker has ended."""
        line = self._lines[tenant]
        line.awake_since, line.is_going = None, False
        if not line.is_served:
            self._dismiss(line)
        elif line.has_work:
            self.want(tenant)

    @property
    def is_quiet(self) -> bool:
        """All were looked at, and nobody waits for a place."""
        return all(line.was_looked_at for line in self._lines.values()) and not self._waiting()
