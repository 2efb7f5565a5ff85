"""What a run did."""

from __future__ import annotations

from dataclasses import dataclass

from freehold.model.job import Job
from freehold.model.state import State


@dataclass(frozen=True, slots=True)
class HandlerError:
    """An exception that a handler raised."""

    job_id: int
    task: str
    attempt: int
    error: BaseException


@dataclass(frozen=True, slots=True)
class RunReport:
    """``jobs`` are those that the run changed, as they stand after it, oldest first."""

    jobs: tuple[Job, ...]
    #: How often a handler was called, and how often it was to be called again.
    attempts: int
    retried: int
    errors: tuple[HandlerError, ...]

    @property
    def succeeded(self) -> int:
        return self._count(State.SUCCEEDED)

    @property
    def failed(self) -> int:
        return self._count(State.FAILED)

    @property
    def canceled(self) -> int:
        return self._count(State.CANCELED)

    @property
    def paused(self) -> int:
        return self._count(State.PAUSED)

    @property
    def queued(self) -> int:
        """Ran, and will again: a retry or a snooze that is not due yet."""
        return self._count(State.QUEUED)

    def _count(self, state: State) -> int:
        return sum(job.state is state for job in self.jobs)

    def __str__(self) -> str:
        """What a failed assertion shows."""
        counts = [f"{self._count(state)} {state}" for state in State if self._count(state)]
        lines = [f"{self.attempts} attempts; jobs: {', '.join(counts) or 'none'}"]
        lines += [
            f"  job {each.job_id} of {each.task}, attempt {each.attempt}: {each.error!r}"
            for each in self.errors
        ]
        return "\n".join(lines)
