"""One retry policy for errors, timeouts and lost leases alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from freehold.errors import BadSettings

MAX_ATTEMPTS_LIMIT = 32_000
#: Ten years: longer than any use, and within the range of every store.
WAIT_LIMIT_SECONDS = 10 * 365 * 86400.0


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a job is attempted, and how long it waits in between.

    After the n-th failed attempt the job waits ``base_seconds * factor ** (n - 1)``, at most
    ``cap_seconds``. ``jitter`` shortens the wait by up to that share, so that jobs which failed
    together do not run again together.

    The defaults survive an outage of an hour: the first ten attempts are made within nine minutes,
    the last after 2.5 to 3.1 hours.

    A job is retried after the exceptions in ``retry_on``, and never after those in ``give_up_on``,
    which wins where both match.
    """

    max_attempts: int = 15
    base_seconds: float = 1.0
    factor: float = 2.0
    cap_seconds: float = 3600.0
    jitter: float = 0.2
    retry_on: tuple[type[BaseException], ...] = (Exception,)
    give_up_on: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.max_attempts <= MAX_ATTEMPTS_LIMIT:
            raise BadSettings(
                f"max_attempts={self.max_attempts!r}: give a number from 1 to {MAX_ATTEMPTS_LIMIT}"
            )
        for name, low in (("base_seconds", 0.0), ("factor", 1.0), ("cap_seconds", 0.0)):
            value = getattr(self, name)
            if not low <= value < float("inf"):
                raise BadSettings(f"{name}={value!r}: give a finite number of at least {low:g}")
        if self.cap_seconds > WAIT_LIMIT_SECONDS:
            raise BadSettings(f"cap_seconds={self.cap_seconds!r}: give at most ten years")
        if not 0.0 <= self.jitter <= 1.0:
            raise BadSettings(f"jitter={self.jitter!r}: give a share from 0 to 1")
        for name in ("retry_on", "give_up_on"):
            object.__setattr__(self, name, _exceptions(name, getattr(self, name)))

    def delay_seconds(self, attempt: int, chance: float) -> float:
        """The wait after this failed attempt; ``chance`` is a random number in [0, 1)."""
        try:
            full = self.base_seconds * float(self.factor) ** max(attempt - 1, 0)
        except OverflowError:  # 2.0 ** 1100 is not a float
            full = self.cap_seconds if self.base_seconds else 0.0
        return min(full, self.cap_seconds) * (1.0 - self.jitter * chance)

    def is_retryable(self, error: BaseException) -> bool:
        """Whether the policy allows a retry after this exception."""
        if isinstance(error, self.give_up_on):
            return False
        return isinstance(error, self.retry_on)


def _exceptions(name: str, given: object) -> tuple[type[BaseException], ...]:
    """As `isinstance` needs them: a wrong value must fail here, not when a handler raises."""
    each = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(one, type) and issubclass(one, BaseException) for one in each):
        raise BadSettings(f"{name}={given!r}: give a tuple of exception classes")
    return each


DEFAULT_RETRY = Retry()
