"""A folder with tenants: a file each, beside the control file that gives them their names.

`freehold.db` has `freehold.acme.db`.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from freehold.clock import Micros, system_micros
from freehold.errors import TenantExists
from freehold.fork_safety import lock_of
from freehold.model.tenant import check_tenant
from freehold.store.movable_shard import MovableShard, cannot_move
from freehold.store.shard import TenantActivity
from freehold.store.sqlite import file_copy
from freehold.store.sqlite.database import SqliteDatabase
from freehold.store.sqlite.file_poll import FilePoll, signature
from freehold.store.sqlite.listener import LOOK_SECONDS

#: Looking at one more file costs this much of the time between two looks.
_LOOK_SECONDS_EACH = 0.0005
#: How often the list of tenants is read again.
_LIST_SECONDS = 5.0


class SqliteShard:
    """Where tenants live: the folder of the control file."""

    def __init__(self, path: Path, clock: Micros = system_micros) -> None:
        self.path = path
        self._clock = clock
        self._glances = FilePoll(clock)
        self._tenants: dict[str, tuple[int, SqliteDatabase]] = {}
        self._lock = lock_of(self)

    @property
    def shown(self) -> str:
        return f"sqlite:///{self.path}"

    def path_of(self, tenant: str) -> Path:
        """The only way from a tenant's name to a file: it went through the whitelist."""
        return self.path.with_name(f"{self.path.stem}.{check_tenant(tenant)}{self.path.suffix}")

    def open(self, tenant: str) -> SqliteDatabase:
        """The same object, as long as the file is the same. Raises SchemaMissing if it is gone."""
        path = self.path_of(tenant)
        with self._lock:
            number = path.stat().st_ino if path.exists() else 0
            known = self._tenants.get(tenant)
            if known is not None and known[0] == number:
                return known[1]
            self._forget(tenant)
            database = SqliteDatabase(path, self._clock, must_exist=True)
            self._tenants[tenant] = number, database
            return database

    def _forget(self, tenant: str) -> None:
        _, database = self._tenants.pop(tenant, (0, None))
        if database is not None:
            database.close()

    # -- coming and going --------------------------------------------------------------------

    def create(self, tenant: str) -> None:
        path = self.path_of(tenant)
        if path.exists() and file_copy.is_used(path):
            raise TenantExists(f"{path} is there already, with jobs: choose another name")
        SqliteDatabase(path, self._clock).close()

    def drop(self, tenant: str) -> None:
        """First nobody can write any more, then it goes."""
        path = self.path_of(tenant)
        with self._lock:
            self._forget(tenant)
        if path.exists():
            file_copy.retire(path, whatever_is_leased=True)
            file_copy.remove(path)
        file_copy.remove_half(path)

    # -- watching ----------------------------------------------------------------------------

    async def awake(self, tenants: Sequence[str]) -> list[TenantActivity]:
        found = []
        for tenant in tenants:
            has_work, trouble = self._glances.look(self.path_of(tenant))
            found.append(TenantActivity(tenant, has_work, trouble))
        return found

    async def listen(
        self, tenants: Callable[[], Sequence[str]], heard: Callable[[str, str | None], None]
    ) -> None:
        """A commit changes the file or its log. What is missed costs latency only."""
        seen: dict[str, object] = {}
        while True:
            wanted = tuple(tenants())
            seen = {tenant: seen[tenant] for tenant in wanted if tenant in seen}
            pause = LOOK_SECONDS + _LOOK_SECONDS_EACH * len(wanted)
            for _ in range(max(1, round(_LIST_SECONDS / pause))):
                for tenant in wanted:
                    now = signature(self.path_of(tenant))
                    if seen.get(tenant) != now:
                        seen[tenant] = now
                        heard(tenant, "")
                await asyncio.sleep(pause)

    # -- moving ------------------------------------------------------------------------------

    def holds(self, tenant: str) -> bool:
        return self.path_of(tenant).exists()

    @contextlib.contextmanager
    def alone(self, tenant: str) -> Iterator[bool]:
        check_tenant(tenant)  # one at a time from this folder, whichever it is
        lock = os.open(f"{self.path}-move", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            os.close(lock)

    def is_locked_up(self, tenant: str) -> bool:
        path = self.path_of(tenant)
        return path.exists() and file_copy.is_retired(path)

    def lock_up(self, tenant: str) -> bool:
        return file_copy.retire(self.path_of(tenant))

    def let_out(self, tenant: str) -> None:
        path = self.path_of(tenant)
        if path.exists():
            file_copy.restore(path)

    def drop_locked_up(self, tenant: str) -> None:
        if self.is_locked_up(tenant):
            self.drop(tenant)

    def take_over(self, tenant: str, source: MovableShard) -> None:
        if not isinstance(source, SqliteShard):
            raise cannot_move(source, self)
        goal = self.path_of(tenant)
        if not goal.exists():
            SqliteDatabase(self.path, self._clock).close()  # the folder has its control file
            file_copy.copy(source.path_of(tenant), goal)

    def use_few(self) -> None:
        """Every tenant has a file of its own."""

    def close(self) -> None:
        with self._lock:
            for tenant in tuple(self._tenants):
                self._forget(tenant)

    async def aclose(self) -> None:
        """Event loops share the writers' threads: they end with close()."""


def _keeps_the_promise(place: SqliteShard) -> MovableShard:
    """For the type checker."""
    return place
