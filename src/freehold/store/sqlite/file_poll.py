"""Checks from outside whether the jobs of a file need a worker.

A file without work that has not changed since still has no work, until the next time that is stored
in it. So an idle tenant costs two calls to the file system, and no open file.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import NamedTuple, TypeAlias

from freehold.clock import Micros
from freehold.store.sqlfiles import load_migrations
from freehold.store.sqlite.engine import existing, is_foreign
from freehold.store.stage_sql import STAGE_SQL

FileSignature: TypeAlias = tuple[tuple[int, int, int] | None, ...]
#: The timestamps of a file system are less precise than changes can be frequent: a file that
#: changed less than this before it was read can have changed again with the same timestamp.
_TIMESTAMP_PRECISION_NANOSECONDS = 50_000_000
_BUSY_SECONDS = 0.05
_NEVER = 2**62

#: Whether there is work now; and the next time at which there may be some.
_HAS_WORK = """
with open_now as (
    select not exists (select 1 from queue where name = '*' and paused_at is not null
        and coalesce(paused_until > :now, 1)) as yes
),
ready as (
    select distinct queue from job where stage in ({ready}, {lane_head})
)
select
    -- The clock was set back behind a lease of the future; a second more, for claims since :now.
    exists (select 1 from job where stage = {leased}
        and (lease_expires_at <= :now or coalesce(heartbeat_at, leased_at) > :now + 1000000))
    or exists (select 1 from schedule where next_at <= :now)
    or exists (select 1 from bulk_operation where state = 'running')
    or exists (select 1 from signal where not delivered)
    or exists (select 1 from flow_end) or exists (select 1 from flow where due)
    or exists (select 1 from job where start_by is not null and attempt = 0 and start_by <= :now)
    or ((select yes from open_now) and (
        exists (select 1 from job where stage in ({scheduled}, {backoff}) and run_at <= :now)
        or exists (select 1 from job where stage = {limited})
        or exists (select 1 from lane where paused_until <= :now)
        or exists (select 1 from ready where not exists (
            select 1 from queue q where q.name = ready.queue and q.paused_at is not null
            and coalesce(q.paused_until > :now, 1))))),
    min(coalesce((select min(lease_expires_at) from job where stage = {leased}), :never),
        coalesce((select min(run_at) from job where stage in ({scheduled}, {backoff})), :never),
        coalesce((select min(start_by) from job
            where start_by is not null and attempt = 0), :never),
        coalesce((select min(next_at) from schedule where next_at is not null), :never),
        coalesce((select min(paused_until) from lane where paused_until > :now), :never),
        coalesce((select min(paused_until) from queue where paused_until > :now), :never))
""".format(**STAGE_SQL)


class _FileState(NamedTuple):
    signature: FileSignature
    checked_at: int
    idle_until: int

    def is_idle(self, signature: FileSignature, now: int) -> bool:
        """Until the next stored time, and not once the clock was set back."""
        return self.signature == signature and self.checked_at <= now < self.idle_until


class FilePoll:
    """Remembers the state of files without work. For one shard, in one thread."""

    def __init__(self, clock: Micros) -> None:
        self._clock = clock
        self._idle: dict[Path, _FileState] = {}

    def check(self, path: Path) -> tuple[bool, str | None]:
        """Whether there is work; or what is broken."""
        now = self._clock()
        before = file_signature(path)
        idle = self._idle.get(path)
        if idle is not None and idle.is_idle(before, now):
            return False, None
        self._idle.pop(path, None)
        if before[0] is None:
            return False, f"the file {path} does not exist"
        try:
            has_work, next_time = _query(path, now)
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                return False, None  # for a moment only: the next check will find out
            return False, f"{path}: {error}"
        except sqlite3.Error as error:
            return False, f"{path}: {error}"
        if not has_work and is_stable(before, now):
            self._idle[path] = _FileState(before, now, next_time)
        return has_work, None


def file_signature(path: Path) -> FileSignature:
    """Changes with every commit, which writes to the log or to the file itself."""
    return _stat(path), _stat(Path(f"{path}-wal"))


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def is_stable(signature: FileSignature, now_micros: int) -> bool:
    """The last change is long enough ago that a later one would have another timestamp."""
    newest = max(stat[2] for stat in signature if stat is not None)
    return newest + _TIMESTAMP_PRECISION_NANOSECONDS < now_micros * 1000


def _query(path: Path, now: int) -> tuple[bool, int]:
    connection = sqlite3.connect(
        existing(path), uri=True, timeout=_BUSY_SECONDS, isolation_level=None
    )
    with contextlib.closing(connection):
        if _must_migrate(connection):
            return True, now
        row = connection.execute(_HAS_WORK, {"now": now, "never": _NEVER}).fetchone()
    return bool(row[0]), int(row[1])


def _must_migrate(connection: sqlite3.Connection) -> bool:
    """A file of an older release lacks tables that are read here: the worker that opens it migrates
    it, and the next check finds out about its jobs."""
    (version,) = connection.execute("pragma user_version").fetchone()
    newest = load_migrations("freehold.store.sqlite")[-1][0]
    return 0 < version < newest and not is_foreign(connection)
