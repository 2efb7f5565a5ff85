"""What a handler knows about its own attempt."""

from __future__ import annotations

from collections.abc import Callable

from leasehold.model.job import Attempt
from leasehold.worker.hand import Held, StopReason


class LeaseView:
    """The lease, as its handler may ask for it at any moment, from any thread."""

    def __init__(self, held: Held, now: Callable[[], float]) -> None:
        self._held = held
        self._now = now

    @property
    def token(self) -> int:
        """Grows with every claim: hand it to outside systems, and let them refuse smaller ones."""
        return self._held.attempt.token

    @property
    def held(self) -> bool:
        """Whether this attempt still owns its job."""
        lost = self._held.stop_reason is StopReason.LEASE_LOST
        return not lost and self._now() < self._held.valid_until


class Context:
    """Given to handlers that have a parameter ``ctx``."""

    def __init__(self, held: Held, now: Callable[[], float]) -> None:
        self._held = held
        self.lease = LeaseView(held, now)

    @property
    def job(self) -> Attempt:
        """The job as it was claimed: id, task, queue, target, attempt and limits."""
        return self._held.attempt

    @property
    def attempt(self) -> int:
        return self._held.attempt.number

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the handler should stop, or None while it should go on."""
        return self._held.stop_reason

    @property
    def canceled(self) -> bool:
        """Whether the handler should stop, whatever the reason. Coroutines are told anyway."""
        return self._held.stop_reason is not None
