"""How long to wait before another worker is started, where they keep dying. Pure."""

from __future__ import annotations

#: A worker that ends within this time has hardly worked.
SOON_SECONDS = 5.0
FIRST_SECONDS = 0.5
LONGEST_SECONDS = 30.0


class RestartBackoff:
    """Doubles with each worker that dies soon; over when one has lived that was started since."""

    def __init__(self) -> None:
        self._failures = 0
        self._failed_at = 0.0
        self._until = 0.0

    @property
    def seconds(self) -> float:
        """How long was waited for the last time."""
        return min(FIRST_SECONDS * 2.0 ** (self._failures - 1), LONGEST_SECONDS)

    def is_over(self, now: float) -> bool:
        return now >= self._until

    def died(self, began: float, now: float) -> bool:
        """Answers whether that was soon after its start."""
        if now - began >= SOON_SECONDS:
            return False
        self._failures += 1
        self._failed_at = now
        self._until = now + self.seconds
        return True

    def lives(self, began: float, now: float) -> None:
        if began > self._failed_at and now - began >= SOON_SECONDS:
            self._failures = 0

    def forget(self) -> None:
        """Something has changed: try at once."""
        self._failures, self._until = 0, 0.0
