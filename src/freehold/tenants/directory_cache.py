"""Where a tenant lives, as the directory says; believed for a few seconds."""

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

#: Who moved is found elsewhere this much later, or at once where the old place has nothing.
CACHE_SECONDS = 5.0


def existing(name: str) -> Verb[Tenant]:
    """Its line in the directory. Raises TenantNotFound with the nearest names."""
    found = yield from tenant(check_tenant(name))
    if found is not None:
        return found
    known = yield from tenants()
    names = [each.name for each in known]
    close = get_close_matches(name, names, n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {len(names)} others"
    raise TenantNotFound(
        f"there is no tenant {name!r}: {hint}; `freehold tenants create {name}` makes it"
    )


class DirectoryCache:
    """The directory, for those who look into it often."""

    def __init__(self, control: Database, now: Callable[[], float] = monotonic) -> None:
        self._control = control
        self._store = Store(control.session())
        self._awaited = AsyncStore(control.async_session())
        self._now = now
        self._lines: dict[str, tuple[float, Tenant]] = {}

    def line(self, name: str, *, anew: bool = False) -> Tenant:
        fresh = None if anew else self._fresh(name)
        if fresh is not None:
            return fresh
        try:
            return self._remember(self._store.run(existing(name)))
        except StoreUnavailable as error:
            return self._believed(name, error)

    async def aline(self, name: str, *, anew: bool = False) -> Tenant:
        fresh = None if anew else self._fresh(name)
        if fresh is not None:
            return fresh
        try:
            return self._remember(await self._awaited.run(existing(name)))
        except StoreUnavailable as error:
            return self._believed(name, error)

    def last(self, name: str) -> Tenant:
        """As it was seen last. For whoever holds a lease: until that ends nobody moves."""
        return self._lines[name][1] if name in self._lines else self.line(name)

    def _believed(self, name: str, error: StoreUnavailable) -> Tenant:
        """While the directory cannot be reached: its tenants may live on servers that can."""
        if name not in self._lines:
            raise error
        return self._remember(self._lines[name][1])

    async def aclose(self) -> None:
        await self._control.aclose()

    def _fresh(self, name: str) -> Tenant | None:
        until, line = self._lines.get(name, (0.0, None))
        return line if self._now() < until else None

    def _remember(self, line: Tenant) -> Tenant:
        self._lines[line.name] = self._now() + CACHE_SECONDS, line
        return line
