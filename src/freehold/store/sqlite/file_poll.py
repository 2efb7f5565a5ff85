"""A look at a file from outside: does it have anything to do?

A file that did not change since it had nothing to do still has nothing to do, until the next
time that it knows of. So an idle tenant costs two questions to the file system, and no open file.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import NamedTuple, TypeAlias

from freehold.clock import Micros
from freehold.store.sqlite.engine import existing

Signature: TypeAlias = tuple[tuple[int, int, int] | None, ...]
#: File systems tell the time of a change less exactly than changes can follow each other: what
#: changed less than this before we looked can have changed again since.
_UNSURE_NANOSECONDS = 50_000_000
_BUSY_SECONDS = 0.05
_NEVER = 2**62

#: Something to do now; if not, when there will be something, as far as is known.
_HAS_WORK = """
with open_now as (
    select not exists (select 1 from queue where name = '*' and paused_at is not null
        and coalesce(paused_until > :now, 1)) as yes
),
ready as (
    select distinct queue from job where stage in ('r','R')
)
select
    exists (select 1 from job where stage = 'h' and lease_expires_at <= :now)
    or ((select yes from open_now) and (
        exists (select 1 from job where stage in ('w','b') and run_at <= :now)
        or exists (select 1 from job where stage = 'l')
        or exists (select 1 from lane where paused_until <= :now)
        or exists (select 1 from ready where not exists (
            select 1 from queue q where q.name = ready.queue and q.paused_at is not null
            and coalesce(q.paused_until > :now, 1))))),
    min(coalesce((select min(lease_expires_at) from job where stage = 'h'), :never),
        coalesce((select min(run_at) from job where stage in ('w','b')), :never),
        coalesce((select min(paused_until) from lane where paused_until > :now), :never),
        coalesce((select min(paused_until) from queue where paused_until > :now), :never))
"""


class _FileState(NamedTuple):
    signature: Signature
    idle_until: int


class FilePoll:
    """What was seen of files. For one place, in one thread."""

    def __init__(self, clock: Micros) -> None:
        self._clock = clock
        self._seen: dict[Path, _FileState] = {}

    def look(self, path: Path) -> tuple[bool, str | None]:
        """Whether there is something to do; or what is broken."""
        now = self._clock()
        before = signature(path)
        seen = self._seen.get(path)
        if seen is not None and seen.signature == before and now < seen.idle_until:
            return False, None
        self._seen.pop(path, None)
        if before[0] is None:
            return False, f"the file {path} is not there"
        try:
            has_work, next_time = _ask(path, now)
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                return False, None  # just now; the next look will tell
            return False, f"{path}: {error}"
        except sqlite3.Error as error:
            return False, f"{path}: {error}"
        if not has_work and is_settled(before, now):
            self._seen[path] = _FileState(before, next_time)
        return has_work, None


def signature(path: Path) -> Signature:
    """Changes with every commit to the file: it is in the log, or in the file itself."""
    return _state(path), _state(Path(f"{path}-wal"))


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def is_settled(states: Signature, now_micros: int) -> bool:
    newest = max(state[2] for state in states if state is not None)
    return newest + _UNSURE_NANOSECONDS < now_micros * 1000


def _ask(path: Path, now: int) -> tuple[bool, int]:
    connection = sqlite3.connect(
        existing(path), uri=True, timeout=_BUSY_SECONDS, isolation_level=None
    )
    with contextlib.closing(connection):
        row = connection.execute(_HAS_WORK, {"now": now, "never": _NEVER}).fetchone()
    return bool(row[0]), int(row[1])
