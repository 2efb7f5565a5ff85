"""Telling workers that there is something for them: once, and not with every job.

A worker that was woken looks again soon, and goes on looking soon while it finds something.
Whoever is told meanwhile hears nothing new, while a hint costs those who enqueue a quarter of
their time. So a client tells a queue once in a while only, and not at all where another client
has just done so, which the store says with each job that it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from leasehold.model.job import NewJob
from leasehold.store import hints

#: A worker that was woken looks again within this time: no need to wake it twice.
HINT_SECONDS = 0.004
#: While jobs keep coming closer together than that, it finds one with each look. Should one look
#: find nothing, the next comes within this time.
STREAM_SECONDS = 0.02
#: Enqueueing itself takes a while. Who begins when this is left of it tells again at once, together
#: with the jobs, which is cheaper than by itself afterwards.
_LEFT_SECONDS = 0.001
_NEVER = float("-inf")


def news_of(jobs: Sequence[NewJob]) -> set[str]:
    """What workers may want to hear about these jobs."""
    ways = {(job.queue, job.run_at or job.delay_seconds) for job in jobs if not job.pending}
    return {hints.SCHEDULED if later else hints.ready(queue) for queue, later in ways}


class Crier:
    """Knows what was told of late, by its client and by others."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._told: dict[str, float] = {}
        self._ours: dict[str, float] = {}
        self._came: dict[str, float] = {}
        #: Of which jobs keep coming.
        self._streams: set[str] = set()
        #: Which others tell often enough. If they stop doing so, it is seen afterwards.
        self._others: set[str] = set()
        #: The last job of ours, and when it was stored.
        self._last = (0, _NEVER)

    def before(self, news: set[str]) -> set[str]:
        """What to tell together with the jobs."""
        now = self._now()
        for hint in news:
            flows = now - self._came.get(hint, _NEVER) < HINT_SECONDS
            (self._streams.add if flows else self._streams.discard)(hint)
            self._came[hint] = now
        return self._due(news - self._others, now + _LEFT_SECONDS)

    def after(
        self, news: set[str], told: set[str], ago: float | None = None, job_id: int = 0
    ) -> set[str]:
        """What is still to be told when they are stored. ``ago``: how long somebody had told it
        then, where the store knows."""
        now = self._now()
        crowded = self._is_crowded(job_id, now)
        for hint in news:
            began = self._came.get(hint, now)
            if ago is None or ago >= (STREAM_SECONDS if crowded else HINT_SECONDS):
                self._others.discard(hint)
            # Our own hints stand there too. Among many it does not matter whose they are.
            elif crowded or began - self._ours.get(hint, _NEVER) > ago + _LEFT_SECONDS:
                self._others.add(hint)
                # Unless that is long ago: who was told then looks no more.
                self._told[hint] = max(began, self._told.get(hint, _NEVER))
        late = self._due(news - told, now)
        for hint in told | late:
            self._told[hint] = self._ours[hint] = now
        return late

    def _is_crowded(self, job_id: int, now: float) -> bool:
        """Whether jobs keep coming from others: numbers are given in turn."""
        last_id, at = self._last
        self._last = job_id, now
        return now - at < HINT_SECONDS * (job_id - last_id)

    def _due(self, news: set[str], now: float) -> set[str]:
        due = {hint for hint in news if now - self._told.get(hint, _NEVER) >= self._enough(hint)}
        # From here on the others of this client count on it.
        self._told.update(dict.fromkeys(due, now))
        return due

    def _enough(self, hint: str) -> float:
        flows = hint in self._streams or hint in self._others
        return STREAM_SECONDS if flows else HINT_SECONDS
