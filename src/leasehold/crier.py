"""1. Telling workers that there is something for them: once, not with every job.

A worker that was woken looks again soon. Whoever is told within that time hears nothing new,
while a hint costs its sender as much as a third of a job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from leasehold.model.job import NewJob
from leasehold.store import hints

#: A worker that was woken looks again within this time: no need to wake it twice.
HINT_SECONDS = 0.004
#: Enqueueing itself takes a while. Who begins when this is left of it tells again at once, together
#: with the jobs, which is cheaper than by itself afterwards.
_LEFT_SECONDS = HINT_SECONDS / 2


def news_of(jobs: Sequence[NewJob]) -> set[str]:
    """What workers may want to hear about these jobs."""
    ways = {(job.queue, job.run_at or job.delay_seconds) for job in jobs if not job.pending}
    return {hints.SCHEDULED if later else hints.ready(queue) for queue, later in ways}


class Crier:
    """Remembers what one client has told, and until when that is enough."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._until: dict[str, float] = {}

    def before(self, news: set[str]) -> set[str]:
        """What to tell together with the jobs."""
        return self._tell(news, _LEFT_SECONDS)

    def after(self, news: set[str], told: set[str]) -> set[str]:
        """What is still to be told when they are stored: it took so long that nobody looks now."""
        if not told:
            return self._tell(news)
        now = self._now()
        self._until.update((hint, now + HINT_SECONDS) for hint in told)
        return self._tell(news - told)

    def _tell(self, news: set[str], left: float = 0.0) -> set[str]:
        now = self._now()
        fresh = {hint for hint in news if now >= self._until.get(hint, 0.0) - left}
        # From here on the others of this client count on it.
        for hint in fresh:
            self._until[hint] = now + HINT_SECONDS
        return fresh
