"""How long to wait before the next worker is started, while workers keep crashing. Pure."""

from __future__ import annotations

#: A worker that ends within this time counts as a failed start.
SOON_SECONDS = 5.0
FIRST_SECONDS = 0.5
LONGEST_SECONDS = 30.0


class RestartBackoff:
    """Doubles with each failed start; reset once a later worker stays alive."""

    def __init__(self) -> None:
        self._failures = 0
        self._failed_at = 0.0
        self._until = 0.0

    @property
    def seconds(self) -> float:
        """The current wait."""
        return min(FIRST_SECONDS * 2.0 ** (self._failures - 1), LONGEST_SECONDS)

    def is_over(self, now: float) -> bool:
        return now >= self._until

    def ended(self, started_at: float, now: float) -> bool:
        """Returns whether that was a failed start."""
        if now - started_at >= SOON_SECONDS:
            return False
        self._failures += 1
        self._failed_at = now
        self._until = now + self.seconds
        return True

    def alive(self, started_at: float, now: float) -> None:
        if started_at > self._failed_at and now - started_at >= SOON_SECONDS:
            self._failures = 0

    def reset(self) -> None:
        """The code has changed: start the next worker at once."""
        self._failures, self._until = 0, 0.0
