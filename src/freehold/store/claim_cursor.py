"""Where a claimer's last claims ended: what it remembers of each queue between two of them.

Jobs that were claimed and finished stay in the index until they are vacuumed, and nobody can
vacuum what an old transaction might still want to see. A claim that begins at the start then
walks over all of them. So a claimer goes on where its last claim ended, and begins again from
the start often enough that nothing waits long which came in behind it: a higher priority, a
retry under its old number, a late commit. How often follows from what a look from the start
costs: at most one twentieth of the time goes into that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

START = (-32768, 0)
#: Looks from the start may take this share of the time.
_SHARE = 1 / 20
_SOONEST, _LATEST = 0.01, 1.0
#: A look that takes less than this is cheap enough to be repeated at once.
_CHEAP_SECONDS = 0.005
#: Where there was a lane, a limit or a pause, there will be others.
_SPECIAL_SECONDS = 1.0


class ClaimCursor:
    """One queue, as one claimer has seen it."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._after = START
        self._look_again_at = 0.0
        # The shortest of a few: one look can be slow for reasons of its own.
        self._costs: deque[float] = deque(maxlen=3)
        self._began = 0.0
        #: Whether the queue has a limit, and which keys with a limit it had: known from the last
        #: claim, so that the next one takes its locks at once.
        self.limited = False
        self.keys: list[str] = []
        #: Whether all tenants of the database share a limit.
        self.shared = False
        #: The last claim was refused something by a limit: room may come back without a word.
        self.held_back = False
        self.weight = 1.0
        self._plain_from = 0.0

    @property
    def is_limited(self) -> bool:
        """What is limited is never claimed ahead: it would keep others from what they may have."""
        return self.limited or self.shared

    @property
    def is_plain(self) -> bool:
        """Of late nothing was to be considered but who comes first."""
        return self._now() >= self._plain_from

    def meet_odd(self) -> None:
        self._plain_from = self._now() + _SPECIAL_SECONDS

    @property
    def is_start(self) -> bool:
        return self._after == START

    def begin(self) -> tuple[int, int]:
        """Where this claim begins: (rank, id)."""
        self._began = self._now()
        if self._began >= self._look_again_at:
            self._after = START
        return self._after

    def looked(self) -> None:
        """The claim has been answered: remember what a look from the start costs."""
        if self.is_start:
            ended = self._now()
            self._costs.append(ended - self._began)
            pause = min(max(min(self._costs) / _SHARE, _SOONEST), _LATEST)
            self._look_again_at = ended + pause

    def advance(self, rank: int, job_id: int) -> None:
        self._after = max(self._after, (rank, job_id))

    def back_to_start(self) -> bool:
        """Nothing is left beyond. Whether the start is worth another look at once."""
        if self.is_start or min(self._costs, default=0.0) >= _CHEAP_SECONDS:
            return False
        self._after = START
        return True

    def unsure_seconds(self) -> float:
        """How long until it can be said that nothing is there: what stands before the place has
        still to be looked at. 0: the last look began at the start."""
        return 0.0 if self.is_start else max(0.001, self._look_again_at - self._now())

    def forget(self) -> None:
        """After an error nobody knows what was skipped."""
        self._after = START


class ClaimCursors:
    """The places of one claimer."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._places: dict[str, ClaimCursor] = {}

    def place(self, queue: str) -> ClaimCursor:
        if queue not in self._places:
            self._places[queue] = ClaimCursor(self._now)
        return self._places[queue]

    def forget(self) -> None:
        """The store cannot be reached: being unsure of one queue is no reason to hurry then."""
        for place in self._places.values():
            place.forget()


def no_cursors() -> ClaimCursors:
    """For a claim that stands alone: it always begins at the start."""
    return ClaimCursors(lambda: 0.0)
