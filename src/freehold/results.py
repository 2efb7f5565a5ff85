"""Waiting for the result of a job: where it is allowed, how long it lasts, what the caller gets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Protocol, TypeVar

import msgspec

from freehold.errors import BadInput, JobCanceled, JobFailed, JobNotFound, Refused, ResultTimeout
from freehold.model.job import JobEnd
from freehold.model.retry import WAIT_LIMIT_SECONDS
from freehold.model.state import State
from freehold.signature import Signature
from freehold.telemetry import running_attempt

T_co = TypeVar("T_co", covariant=True)


class ResultHandle(Protocol[T_co]):
    """What a call needs of the handle of its job."""

    def result(self, timeout: float | timedelta | None = None) -> T_co: ...

    async def aresult(self, timeout: float | timedelta | None = None) -> T_co: ...


def check_may_wait(connection: Any = None) -> None:
    """A handler that waits for a job holds its slot meanwhile. Once all slots are held by such
    handlers, no worker is left to run the jobs that they wait for."""
    attempt = running_attempt.get()
    if attempt is not None:
        raise Refused(
            f"job {attempt.job_id} of {attempt.task} waits for the result of a job inside its "
            "handler: all slots could be waiting, with none left for the jobs that they wait for. "
            "Enqueue the job without waiting, and let it enqueue what comes next"
        )
    if connection is not None:
        raise BadInput(
            "a call in the caller's transaction would wait for a job that does not exist before "
            "the commit: leave out connection="
        )


def seconds_of_wait(timeout: float | timedelta | None) -> float | None:
    """None: without an end."""
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is None or (is_number and 0 <= seconds <= WAIT_LIMIT_SECONDS):
        return seconds
    raise BadInput(f"timeout={timeout!r}: give 0 or more seconds, at most ten years")


def too_late(job_id: int, seconds: float | None) -> ResultTimeout:
    """A test harness can end a wait without a timeout: its jobs run at once or not at all."""
    within = "" if seconds is None else f" within {seconds:g} s"
    return ResultTimeout(f"job {job_id} has not ended{within}, and goes on", job_id)


def value_of(job_id: int, end: JobEnd | None, signature: Signature | None) -> Any:
    """What a caller gets of a job that has ended. Without its signature plain JSON."""
    if end is None:
        raise JobNotFound(
            f"there is no job {job_id}: it was deleted, by hand or by age, or the transaction that "
            "enqueued it is not committed"
        )
    what, because = f"job {job_id} of {end.task}", f": {end.reason}" if end.reason else ""
    if end.state is State.CANCELED:
        raise JobCanceled(f"{what} was canceled{because}", job_id)
    if end.state is State.FAILED:
        error = end.error
        stored = () if error is None else (error.type, error.message, error.trace)
        raise JobFailed(f"{what} has failed{because}", job_id, *stored)
    text = "null" if end.result is None else end.result
    return msgspec.json.decode(text) if signature is None else signature.decode_result(job_id, text)
