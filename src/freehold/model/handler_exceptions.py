"""Exceptions by which a handler ends its attempt and decides what comes next."""

from __future__ import annotations

from datetime import timedelta

from freehold.errors import BadInput
from freehold.model.retry import WAIT_LIMIT_SECONDS


class HandlerException(Exception):
    """The base class. A handler that catches it must raise it again."""

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(reason or type(self).__name__)
        self.reason = reason


class RetryLater(HandlerException):
    """A failed attempt; try again after ``delay``, or after the policy's own wait."""

    def __init__(
        self, delay: float | timedelta | None = None, *, reason: str | None = None
    ) -> None:
        super().__init__(reason)
        self.delay_seconds = None if delay is None else _seconds(delay)


class Snooze(HandlerException):
    """Run again after ``delay``. Does not count as an attempt."""

    def __init__(self, delay: float | timedelta, *, reason: str | None = None) -> None:
        super().__init__(reason)
        self.delay_seconds = _seconds(delay)


class Pause(HandlerException):
    """Pause the job until an operator resumes it. Does not count as an attempt."""


class Cancel(HandlerException):
    """End the job as canceled."""


class Fail(HandlerException):
    """End the job as failed, without another attempt."""


class AttemptEnded(BaseException):
    """Raised by the context in a handler whose attempt ends here; the handler runs again later.

    Not an Exception, so that `except Exception` of the handler does not take it for an error.
    """


def _seconds(delay: float | timedelta) -> float:
    seconds = delay.total_seconds() if isinstance(delay, timedelta) else float(delay)
    if not 0 <= seconds <= WAIT_LIMIT_SECONDS:
        raise BadInput(f"delay={delay!r}: give 0 or more seconds, at most ten years")
    return seconds
