"""The result of a run."""

from __future__ import annotations

from dataclasses import dataclass

from freehold.model.job import Job
from freehold.model.plural import count
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
    """``jobs`` are those that the run changed, in their state after it, oldest first."""

    jobs: tuple[Job, ...]
    #: How many times handlers were called, and how many of these calls led to a retry.
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
        """Jobs that ran and wait for a retry or the end of a snooze."""
        return self._count(State.QUEUED)

    def _count(self, state: State) -> int:
        return sum(job.state is state for job in self.jobs)

    def __str__(self) -> str:
        """For the output of a failed assertion."""
        counts = [f"{self._count(state)} {state}" for state in State if self._count(state)]
        lines = [f"{count(self.attempts, 'attempt')}; jobs: {', '.join(counts) or 'none'}"]
        lines += [
            f"  job {each.job_id} of {each.task}, attempt {each.attempt}: {each.error!r}"
            for each in self.errors
        ]
        return "\n".join(lines)
