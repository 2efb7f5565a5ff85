"""Whether a worker drains. Built before its parts: any of them may request it, all can read it."""

from __future__ import annotations

import asyncio

from freehold.exit_codes import EXIT_RECYCLE
from freehold.telemetry import fields, log
from freehold.worker.held_leases import HeldLease

#: A handler that has not ended this long after its stop is stuck.
STUCK_SECONDS = 5.0


class Drain:
    """Requested by a signal, a manager, a host, a crashed part or a stuck handler."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        #: The grace period of running jobs is over.
        self.at_once = asyncio.Event()
        #: Jobs with a handler that did not stop.
        self.stuck_jobs: set[int] = set()

    def request_at_once(self) -> None:
        self.requested.set()
        self.at_once.set()

    def on_stuck(self, lease: HeldLease) -> None:
        """A handler did not end after its stop. Only the end of its process can end it."""
        attempt = lease.attempt
        if attempt.job_id not in self.stuck_jobs:
            self.stuck_jobs.add(attempt.job_id)
            log.error(
                "job %d of %s did not stop in %g s (%s): this worker drains and exits with code %d",
                attempt.job_id,
                attempt.task,
                STUCK_SECONDS,
                lease.stop_reason,
                EXIT_RECYCLE,
                extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
            )
        self.requested.set()
