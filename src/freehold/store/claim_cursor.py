"""Claim cursors: where a claimer's last claim in a queue ended.

Claimed and finished jobs stay in the index until they are vacuumed, and vacuum cannot remove rows
that an old transaction might still read. A claim that starts at the head of the index then walks
over all of them. So a claim continues after the last one, and starts at the head again often enough
that no job waits long in front of the cursor: a higher priority, a retry under its old id, a late
commit. How often follows from what such a claim costs: at most one twentieth of the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

START = (-32768, 0)
#: Claims from the head of the index may take this share of the time.
_SHARE = 1 / 20
_SOONEST, _LATEST = 0.01, 1.0
#: A claim from the head that takes less than this is cheap enough to be repeated at once.
_CHEAP_SECONDS = 0.005
#: After a lane, a limit or a pause was met, more of them are expected for this long.
_SPECIAL_SECONDS = 1.0


class ClaimCursor:
    """One queue, as one claimer knows it."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._after = START
        self._restart_at = 0.0
        # The minimum of a few: one claim can be slow for other reasons.
        self._costs: deque[float] = deque(maxlen=3)
        self._began = 0.0
        #: Whether the queue has a limit, and which keys with a limit it had: known from the last
        #: claim, so that the next one takes its locks at once.
        self.has_limit = False
        self.keys: list[str] = []
        #: Whether all tenants of the database share a limit.
        self.shared = False
        #: The queue has a limit, or the tenants share one: all its jobs are limited. They are never
        #: prefetched, because they would take room from other workers.
        self.is_limited = False
        #: A limit stopped the last claim. Room under it can come back without a notification.
        self.limit_reached = False
        self.weight = 1.0
        #: Tasks that the claimer did not know. The claimer removes them once it has logged them.
        self.unknown_tasks: set[str] = set()
        self._plain_from = 0.0

    @property
    def is_plain(self) -> bool:
        """True if no lane, limit or pause was met within the last second, so that the quick claim
        is worth trying."""
        return self._now() >= self._plain_from

    def met_special(self) -> None:
        self._plain_from = self._now() + _SPECIAL_SECONDS

    def met_limits(self, *, limited: bool, shared: bool, keys: Sequence[str]) -> None:
        self.has_limit, self.shared, self.keys = limited, shared, list(keys)
        self.is_limited = limited or shared

    def begin(self) -> tuple[int, int]:
        """Returns the (rank, id) after which this claim begins."""
        self._began = self._now()
        if self._began >= self._restart_at:
            self._after = START
        return self._after

    def ended(self) -> None:
        """The claim has returned: record what a claim from the head of the index costs."""
        if self._after == START:
            ended = self._now()
            self._costs.append(ended - self._began)
            pause = min(max(min(self._costs) / _SHARE, _SOONEST), _LATEST)
            self._restart_at = ended + pause

    def advance(self, last: tuple[int, int]) -> None:
        """Jobs up to this (rank, id) are claimed."""
        self._after = max(self._after, last)

    def back_to_start(self) -> bool:
        """No job is left after the cursor. Returns whether to claim from the head at once."""
        if self._after == START or min(self._costs, default=0.0) >= _CHEAP_SECONDS:
            return False
        self._after = START
        return True

    def unsure_seconds(self) -> float:
        """How long until the jobs in front of the cursor are claimed. 0: the last claim began at
        the head, and found what there is."""
        return 0.0 if self._after == START else max(0.001, self._restart_at - self._now())

    def reset(self) -> None:
        """After an error it is unknown what was skipped."""
        self._after = START


class ClaimCursors(dict[str, ClaimCursor]):
    """The cursors of one claimer, by queue. That of a new queue is made when it is looked up."""

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__()
        self._now = now

    def __missing__(self, queue: str) -> ClaimCursor:
        cursor = self[queue] = ClaimCursor(self._now)
        return cursor

    def reset(self) -> None:
        """The store is unreachable: jobs in front of a cursor are no reason to claim sooner."""
        for cursor in self.values():
            cursor.reset()


def no_cursors() -> ClaimCursors:
    """For a single claim, which always begins at the head."""
    return ClaimCursors(lambda: 0.0)
