"""A folder with tenants: a file each, beside the control file.

Their names derive from that of the control file: `freehold.acme.db` beside `freehold.db`.
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
from freehold.store.shard import MovableShard, TenantActivity, already_has, cannot_move
from freehold.store.sqlite import file_copy
from freehold.store.sqlite.database import SqliteDatabase
from freehold.store.sqlite.errors import Translating
from freehold.store.sqlite.file_poll import FilePoll, file_signature
from freehold.store.sqlite.listener import POLL_SECONDS

#: Each further file adds this to the time between two polls.
_POLL_SECONDS_PER_FILE = 0.0005
#: How often the list of tenants is read again.
_LIST_SECONDS = 5.0


class SqliteShard:
    """The folder of the control file."""

    def __init__(self, path: Path, clock: Micros = system_micros) -> None:
        self.path = path
        self._clock = clock
        self._file_poll = FilePoll(clock)
        self._tenants: dict[str, tuple[int, SqliteDatabase]] = {}
        self._lock = lock_of(self)

    @property
    def shown(self) -> str:
        return f"sqlite:///{self.path}"

    def path_of(self, tenant: str) -> Path:
        """Every tenant's name in a path comes from here: it is checked against a whitelist."""
        return self.path.with_name(f"{self.path.stem}.{check_tenant(tenant)}{self.path.suffix}")

    def open(self, tenant: str) -> SqliteDatabase:
        """The same object, as long as the file is the same. Raises SchemaMissing if it is gone."""
        path = self.path_of(tenant)
        with self._lock:
            number = path.stat().st_ino if path.exists() else 0
            known = self._tenants.get(tenant)
            if known is not None and known[0] == number:
                return known[1]
            self._close_tenant(tenant)
            database = SqliteDatabase(path, self._clock, must_exist=True)
            self._tenants[tenant] = number, database
            return database

    def _close_tenant(self, tenant: str) -> None:
        _, database = self._tenants.pop(tenant, (0, None))
        if database is not None:
            database.close()

    # -- creating and dropping ---------------------------------------------------------------

    def create(self, tenant: str) -> None:
        path = self.path_of(tenant)
        if path.exists() and file_copy.is_used(path):
            raise TenantExists(f"{path} already exists, with jobs: choose another name")
        SqliteDatabase(path, self._clock).close()

    def drop(self, tenant: str, *, only_if_empty: bool = False) -> bool:
        """Retired first, so that no process writes to a file that is about to be removed."""
        path = self.path_of(tenant)
        with self._lock:
            self._close_tenant(tenant)
        if path.exists():
            unless = file_copy.Unless.LIVE if only_if_empty else file_copy.Unless.NEVER
            if not file_copy.retire(path, unless):
                return False
            file_copy.remove(path)
        file_copy.remove_half_copied(path)
        return True

    # -- activity ----------------------------------------------------------------------------

    async def tenants_with_work(self, tenants: Sequence[str]) -> list[TenantActivity]:
        found = []
        for tenant in tenants:
            has_work, error = self._file_poll.check(self.path_of(tenant))
            found.append(TenantActivity(tenant, has_work, error))
        return found

    async def listen(
        self,
        tenants: Callable[[], Sequence[str]],
        on_notification: Callable[[str, str | None], None],
    ) -> None:
        """A commit changes the file or its log. A missed change costs latency only."""
        seen: dict[str, object] = {}
        while True:
            wanted = tuple(tenants())
            seen = {tenant: seen[tenant] for tenant in wanted if tenant in seen}
            poll_seconds = POLL_SECONDS + _POLL_SECONDS_PER_FILE * len(wanted)
            for _ in range(max(1, round(_LIST_SECONDS / poll_seconds))):
                for tenant in wanted:
                    now = file_signature(self.path_of(tenant))
                    if seen.get(tenant) != now:
                        seen[tenant] = now
                        on_notification(tenant, "")
                await asyncio.sleep(poll_seconds)

    # -- moving ------------------------------------------------------------------------------

    def holds(self, tenant: str) -> bool:
        return self.path_of(tenant).exists()

    @contextlib.contextmanager
    def move_lock(self, tenant: str) -> Iterator[bool]:
        check_tenant(tenant)  # one move at a time from or to this folder, whatever the tenant is
        with Translating(self.path):
            lock = os.open(f"{self.path}-move", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            os.close(lock)

    def is_retired(self, tenant: str) -> bool:
        path = self.path_of(tenant)
        return path.exists() and file_copy.is_retired(path)

    def retire(self, tenant: str) -> bool:
        return file_copy.retire(self.path_of(tenant))

    def restore(self, tenant: str) -> None:
        path = self.path_of(tenant)
        if path.exists():
            file_copy.restore(path)

    def drop_retired(self, tenant: str) -> None:
        if self.is_retired(tenant):
            self.drop(tenant)
        file_copy.remove_half_copied(self.path_of(tenant))

    def copy_from(self, tenant: str, source: MovableShard) -> None:
        if not isinstance(source, SqliteShard):
            raise cannot_move(source, self)
        if self.is_retired(tenant):
            return
        goal = self.path_of(tenant)
        if goal.exists():
            raise already_has(self, tenant)
        SqliteDatabase(self.path, self._clock).close()  # the folder has its control file
        file_copy.copy(source.path_of(tenant), goal)

    def share_connections(self) -> None:
        """Nothing to share: every tenant has a file of its own."""

    def close(self) -> None:
        with self._lock:
            for tenant in tuple(self._tenants):
                self._close_tenant(tenant)

    async def aclose(self) -> None:
        """Event loops share the writers' threads, which end with close()."""


def _implements_the_protocol(shard: SqliteShard) -> MovableShard:
    """For the type checker."""
    return shard
