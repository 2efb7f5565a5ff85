"""The argument of every handler of a page, and what it returns."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from freehold.dashboard.watcher import Watcher
from freehold.http.request import ApiRequest
from freehold.http_auth import Role
from freehold.model.audit import DASHBOARD, Author
from freehold.operator import AsyncOperator

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PageRequest(ApiRequest):
    """``root``: where the dashboard is mounted, with the tenant of the path, if it names one."""

    root: str
    form_token: str

    def url(self, *parts: str | int, **query: Any) -> str:
        """The address of a page. Each part is one segment, whatever it contains."""
        path = "/".join(quote(str(part), safe="") for part in parts)
        pairs = [(key, value) for key, value in query.items() if value not in (None, "", (), [])]
        return f"{self.root}/{path}" + (f"?{urlencode(pairs, doseq=True)}" if pairs else "")

    def command_line(self, *words: str | int) -> str:
        """A command of `freehold` for the same jobs, as a shell reads it."""
        tenant = [] if self.tenant is None else ["--tenant", self.tenant]
        return shlex.join(["freehold", *map(str, words), *tenant])

    @property
    def reads(self) -> int:
        """How far a list of jobs looks for a rare filter. A person may wait; a page that loads
        itself again looks once."""
        return 1 if self.is_refresh else 20

    @property
    def is_refresh(self) -> bool:
        """Whether an open page loads itself again."""
        return self.http.method == "GET" and self.http.headers.get("hx-request") is not None

    @property
    def rest_seconds(self) -> float:
        """How long an open page without a stream, which looks by itself, must still wait."""
        looks_by_itself = self.http.headers.get("x-looks-by-itself") is not None
        return self.watcher.refreshing.rest_seconds if self.is_refresh and looks_by_itself else 0.0

    @property
    def watcher(self) -> Watcher:
        """One for each store: that of the service, and those of tenants."""
        watchers: dict[str | None, Watcher] = self.http.state.board.watchers
        if self.tenant not in watchers:
            watchers[self.tenant] = Watcher(self.app)
        return watchers[self.tenant]

    @property
    def operator(self) -> AsyncOperator:
        found = self.watcher.operator() if self.is_refresh else self.app.aoperator
        return found.through(DASHBOARD)

    async def shared(self, name: str, read: Callable[[], Awaitable[T]]) -> T:
        """A value that does not depend on the visitor: open pages read it together."""
        if not (self.is_refresh and self.watcher.is_running):
            return await read()
        found: T = await self.watcher.refreshing.shared(name, read)
        return found

    @property
    def author(self) -> Author:
        return Author(self.caller.name, DASHBOARD, getattr(self.body, "reason", None))

    @property
    def by(self) -> str:
        return self.caller.name

    def may(self, role: Role) -> bool:
        return self.caller.role >= role


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page: its template and values. ``section`` is its entry of the navigation; ``command``
    prints the same on the command line; ``topics`` are the changes after which it is loaded
    again, from ``refresh`` if that is not its own address."""

    template: str
    title: str
    section: str
    values: dict[str, Any] = field(default_factory=dict)
    command: str | None = None
    topics: tuple[str, ...] = ()
    refresh: str | None = None
    status: int = 200


@dataclass(frozen=True, slots=True)
class Redirect:
    """To a page, after a change. ``done`` is a sentence that it shows once."""

    to: str
    done: str | None = None
