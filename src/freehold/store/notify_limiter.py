"""Telling workers that there is something for them: once, and not with every job.

A worker that was woken looks again soon, and goes on looking soon while it finds something.
Whoever is told meanwhile hears nothing new, while a hint costs those who enqueue a quarter of
their time. So a client tells a queue once in a while only, and not at all where another client
has just done so, which the store says with each job that it takes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from freehold.model.job import NewJob
from freehold.store import notifications

#: A worker that was woken looks again within this time: no need to wake it twice.
NOTIFY_SECONDS = 0.004
#: While jobs keep coming closer together than that, it finds one with each look. Should one look
#: find nothing, the next comes within this time.
STREAM_SECONDS = 0.02
#: In a crowd it is the others who tell of what comes after; and should ours be the last for a
#: while, a worker that found nothing twice looks once more within this time.
CONCURRENT_SECONDS = 0.08
#: Enqueueing itself takes a while. Who begins when this is left of it tells again at once, together
#: with the jobs, which is cheaper than by itself afterwards.
_LEFT_SECONDS = 0.001
_NEVER = float("-inf")


def notifications_for(jobs: Sequence[NewJob]) -> set[str]:
    """What workers may want to hear about these jobs."""
    if len(jobs) == 1 and jobs[0].is_due_at_once:
        return {notifications.queue_ready(jobs[0].queue)}
    news = set()
    ways = {(j.queue, j.run_at is not None, bool(j.delay_seconds)) for j in jobs if not j.pending}
    for queue, at, delayed in ways:
        if at or delayed:
            news.add(notifications.SCHEDULED)
        if not delayed:  # a time may have come already: only the store knows what time it is
            news.add(notifications.queue_ready(queue))
    return news


class _ChannelState:
    """What is known of one hint."""

    __slots__ = ("came", "flows", "others", "ours", "told")

    def __init__(self) -> None:
        #: When it was told, and when by us.
        self.told = self.ours = _NEVER
        #: When we last had something to tell, and whether that keeps coming.
        self.came = _NEVER
        self.flows = False
        #: For how long it is enough that others have told it; zero: they do not. If they stop
        #: doing so, it is seen afterwards.
        self.others = 0.0

    def is_due(self, now: float) -> bool:
        enough = self.others or (STREAM_SECONDS if self.flows else NOTIFY_SECONDS)
        return now - self.told >= enough


class NotifyLimiter:
    """Knows what was told of late, by its client and by others."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._known: defaultdict[str, _ChannelState] = defaultdict(_ChannelState)
        #: The last job of ours, and when it was stored.
        self._last = (0, _NEVER)

    def before(self, hint: str) -> bool:
        """Whether to tell it together with the jobs."""
        now, known = self._now(), self._known[hint]
        known.flows = now - known.came < NOTIFY_SECONDS
        known.came = now
        if known.others or not known.is_due(now + _LEFT_SECONDS):
            return False
        known.told = now  # from here on the others of this client count on it
        return True

    def failed(self, hint: str) -> None:
        """Nobody knows whether it was told: the next one tells it again."""
        self._known[hint].told = _NEVER

    def wonders(self, hint: str) -> bool:
        """Whether it matters what others have told: not while our own jobs keep coming."""
        return not self._known[hint].flows

    def after(self, hint: str, told: bool, ago: float | None, crowd: int) -> bool:
        """Whether it is still to be told when they are stored. ``ago``: how long somebody had told
        it then, where the store knows."""
        now, known = self._now(), self._known[hint]
        enough = STREAM_SECONDS if crowd else NOTIFY_SECONDS
        # All of a crowd see at once that it is time, and before any of them has told it. So it is
        # the turn of one of them; and if that one is late, of anybody.
        if crowd and self._last[0] % crowd:
            enough *= 2
        # Less than nothing: the server's clock was set back, and says nothing for a while.
        if ago is None or not 0 <= ago < enough:
            known.others = 0.0
        # Our own hints stand there too. Among many it does not matter whose they are.
        elif crowd or known.came - known.ours > ago + _LEFT_SECONDS:
            known.others = CONCURRENT_SECONDS if crowd else STREAM_SECONDS
            # Unless that is long ago: who was told then looks no more.
            known.told = max(known.told, known.came)
        late = not told and known.is_due(now)
        if told or late:
            known.told = known.ours = now
        return late

    def crowd(self, job_id: int) -> int:
        """How many jobs came since our last one, if they keep coming: numbers are given in turn.
        Zero, if they do not."""
        last_id, at = self._last
        now = self._now()
        self._last = job_id, now
        return job_id - last_id if now - at < NOTIFY_SECONDS * (job_id - last_id) else 0
