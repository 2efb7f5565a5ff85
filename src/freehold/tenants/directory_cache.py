"""Rows of the tenant directory, cached for a few seconds."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from freehold.clock import monotonic
from freehold.errors import StoreUnavailable, TenantNotFound
from freehold.model.tenant import Tenant, check_tenant
from freehold.store.database import Database
from freehold.store.statements import Verb
from freehold.store.store import AsyncStore, Store
from freehold.store.verbs.tenant_directory import tenant, tenants

#: A move is noticed after this time, or at once when the old shard has no schema of the tenant.
CACHE_SECONDS = 5.0


def get_tenant(name: str) -> Verb[Tenant]:
    """The tenant's row. Raises TenantNotFound with similar names."""
    found = yield from tenant(check_tenant(name))
    if found is not None:
        return found
    known = yield from tenants()
    names = [each.name for each in known]
    close = get_close_matches(name, names, n=3)
    help = f"; did you mean {' or '.join(close)}?" if close else ""
    raise TenantNotFound(
        f"there is no tenant {name!r}{help}; `freehold tenants create {name}` creates it"
    )


class DirectoryCache:
    """The directory, for callers that read it with every statement."""

    def __init__(self, control: Database, now: Callable[[], float] = monotonic) -> None:
        self._control = control
        self._store = Store(control.session())
        self._awaited = AsyncStore(control.async_session())
        self._now = now
        self._cached: dict[str, tuple[float, Tenant]] = {}

    def get(self, name: str, *, refresh: bool = False) -> Tenant:
        fresh = None if refresh else self._fresh(name)
        if fresh is not None:
            return fresh
        try:
            return self._keep(self._store.run(get_tenant(name)))
        except StoreUnavailable as error:
            return self._stale(name, error)

    async def aget(self, name: str, *, refresh: bool = False) -> Tenant:
        fresh = None if refresh else self._fresh(name)
        if fresh is not None:
            return fresh
        try:
            return self._keep(await self._awaited.run(get_tenant(name)))
        except StoreUnavailable as error:
            return self._stale(name, error)

    def last_known(self, name: str) -> Tenant:
        """The cached row, however old. For an owner of a lease: no tenant moves while it holds."""
        return self._cached[name][1] if name in self._cached else self.get(name)

    def _stale(self, name: str, error: StoreUnavailable) -> Tenant:
        """While the directory is unreachable, the tenant's own shard may still be reachable."""
        if name not in self._cached:
            raise error
        return self._keep(self._cached[name][1])

    async def aclose(self) -> None:
        await self._control.aclose()

    def _fresh(self, name: str) -> Tenant | None:
        until, found = self._cached.get(name, (0.0, None))
        return found if self._now() < until else None

    def _keep(self, found: Tenant) -> Tenant:
        self._cached[found.name] = self._now() + CACHE_SECONDS, found
        return found
