"""A claimer without a worker, for stores that have no jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from freehold.model.job import Attempt
from freehold.model.limit import Limit
from freehold.telemetry import Telemetry
from freehold.worker.claimer import Claimer, ClaimStore, ServedQueues
from freehold.worker.config import WorkerSettings
from freehold.worker.slots import Slots
from freehold.worker.wakeups import Wakeups


class NoJobs:
    """In the place of an executor."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots

    def room(self) -> int:
        return self.slots.room()

    def hold(self, attempts: list[Attempt], _valid_until: float, _limited: object) -> None:
        raise AssertionError(attempts)


def claimer_without_jobs(
    store: ClaimStore,
    queues: Sequence[str],
    poll_seconds: float = 0.25,
    limits: Mapping[str, Limit] | None = None,
) -> Claimer:
    """In the running loop. Notifications arrive, so it polls only as a safety net."""
    settings = WorkerSettings(poll_interval_ms=poll_seconds * 1000)
    now, wakeups = asyncio.get_running_loop().time, Wakeups()
    wakeups.is_listening = True
    served = ServedQueues(store, queues, now)
    jobs = NoJobs(Slots(5, now))
    return Claimer(store, "w1", Telemetry(), settings, None, limits or {}, served, jobs, wakeups)
