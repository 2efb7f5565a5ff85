"""Whether the store works for a process: how long a part waits after an error, and what is logged.

Every part that uses the store in a loop reports its errors here, so an outage costs one line when
it begins, one a minute, and one when it is over, however many parts and workers the process has.

    part.failed(error) -> seconds      it grows with the time for which this part has failed
    part.works()                       the other parts end their waits: the store is probably back
    part.leave()                       it has given up, or ended: it neither fails nor works
    with part:                         it leaves at the end

The store is back when a statement succeeds and no part fails: a full disk still allows reads.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import threading
from collections.abc import Callable

from freehold.errors import (
    OutcomeUnknown,
    SchemaMissing,
    SchemaTooNew,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)

#: Errors that pass by themselves or once an operator acts. Any other is about one statement.
PASSING = (
    StoreUnavailable,
    OutcomeUnknown,
    StoreReadOnly,
    StoreFull,
    SchemaMissing,
    SchemaTooNew,
)
#: The longest wait, and its share of the time for which the part has failed. What the try took is
#: part of the wait: with a frozen host in its list it takes 3 s, and the next try should not be
#: later because of that.
LONGEST_WAIT_SECONDS = 10.0
_WAIT_SHARE = 0.1
#: Between two lines of one outage.
LINE_SECONDS = 60.0
#: An outage that begins within LINE_SECONDS of a line is logged only if it lasts this long.
_LASTING_SECONDS = 5.0


class GrowingWait:
    """Waits after errors: they grow with the time since the first one, with jitter."""

    def __init__(self) -> None:
        self.failing_since: float | None = None
        #: The end of the last wait, if nothing ended it early.
        self._tried_at = math.inf

    def next(self, first_seconds: float, limit_seconds: float = LONGEST_WAIT_SECONDS) -> float:
        now = asyncio.get_running_loop().time()
        if self.failing_since is None:
            self.failing_since, self._tried_at = now, math.inf
        grown = min((now - self.failing_since) * _WAIT_SHARE, limit_seconds)
        rest = grown - max(now - self._tried_at, 0.0)
        # The clock's last digits differ between processes, and are the same in each simulation.
        wait = max(first_seconds, rest) * (0.75 + 0.5 * (now * 997.0 % 1.0))
        self._tried_at = now + wait
        return wait

    def reset(self) -> None:
        self.failing_since = None


class StoreHealth:
    """One per process. Thread-safe; times are those of the event loops, which all agree."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._failing: set[StorePart] = set()
        #: Parts that failed last, and will not use the store soon.
        self._gone: set[StorePart] = set()
        self._waiting: dict[StorePart, asyncio.AbstractEventLoop] = {}
        self._away_since = 0.0
        self._line_at: float | None = None
        self._is_logged = False
        #: A part has failed and has not worked since. A part that works often reports it only then.
        self.is_disturbed = False

    def part(self, name: str) -> StorePart:
        return StorePart(self, name)

    def _failed(self, part: StorePart, error: Exception, now: float) -> None:
        with self._lock:
            self.is_disturbed = True
            if not self._failing and not self._gone:
                self._away_since, self._is_logged = now, False
            self._failing.add(part)
            self._gone.discard(part)
            since = now - self._away_since
            line_at = self._line_at
            is_recent = line_at is not None and now - line_at < LINE_SECONDS
            if is_recent and (self._is_logged or since < _LASTING_SECONDS):
                return
            was_logged, self._is_logged, self._line_at = self._is_logged, True, now
        what = "the store is away" if isinstance(error, PASSING) else f"the {part.name} fails"
        still = f" for {since:.0f} s" if was_logged else ""
        self._log.warning("%s%s, trying again: %s", what, still, error)

    def _left(self, part: StorePart) -> None:
        with self._lock:
            self._failing.discard(part)
            self._gone.add(part)

    def _works(self, part: StorePart, now: float) -> None:
        with self._lock:
            self._failing.discard(part)
            self._gone.clear()
            self.is_disturbed = bool(self._failing)
            is_back = not self._failing and self._is_logged
            if is_back:
                self._is_logged = False
            waiting = list(self._waiting.items())
        if is_back:
            self._log.warning("the store is back after %.1f s", now - self._away_since)
        for other, loop in waiting:
            with contextlib.suppress(RuntimeError):  # that loop has ended
                loop.call_soon_threadsafe(other.end_wait)


class StorePart:
    """One loop of a process that uses the store."""

    def __init__(self, health: StoreHealth, name: str) -> None:
        self.name = name
        self._health = health
        self._wait = GrowingWait()
        self._end_of_wait = asyncio.Event()
        self._on_back: Callable[[], None] | None = None

    def failed(
        self, error: Exception, first_seconds: float, limit_seconds: float = LONGEST_WAIT_SECONDS
    ) -> float:
        """Returns how long to wait."""
        self._health._failed(self, error, asyncio.get_running_loop().time())
        return self._wait.next(first_seconds, limit_seconds)

    def works(self) -> None:
        if self._wait.failing_since is not None or self._health._gone:
            self._wait.reset()
            self._health._waiting.pop(self, None)
            self._health._works(self, asyncio.get_running_loop().time())

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        if self._wait.failing_since is not None:
            self._wait.reset()
            self._health._waiting.pop(self, None)
            self._health._left(self)

    def call_when_back(self, on_back: Callable[[], None]) -> None:
        """Instead of `wait`: called on this loop when the store works for another part again."""
        self._on_back = on_back
        self._health._waiting[self] = asyncio.get_running_loop()

    async def wait(self, seconds: float) -> None:
        """Ends early only if the store works for another part again, or by `end_wait`."""
        self._end_of_wait.clear()
        self._health._waiting[self] = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                await self._end_of_wait.wait()
        except TimeoutError:
            pass
        finally:
            self._health._waiting.pop(self, None)

    def end_wait(self) -> None:
        self._end_of_wait.set()
        if self._on_back is not None:
            self._on_back()
