"""The time by which a job must have started.

A job that no handler has begun by then is canceled by a sweep, in whichever stage it waits; a claim
does not take it. Once a handler has begun, the time has no meaning any more: a retry, a snooze or a
drain may run later. So does a job that an operator retries.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from freehold.errors import BadInput
from freehold.model.job import Job
from freehold.model.retry import WAIT_LIMIT_SECONDS
from freehold.model.timestamps import check_timestamp


def check_start_by(
    start_by: object, *, run_at: datetime | None, has_delay: bool, has_waiting_key: bool
) -> None:
    """Raises BadInput. Seconds are counted from the time when the job falls due, so that they never
    contradict it; a time can."""
    if start_by is None:
        return
    if has_waiting_key:
        raise BadInput(
            "start_by excludes debounce, throttle and unique until the start: a later call would "
            "join a job that is canceled sooner; leave one of them out"
        )
    if not isinstance(start_by, datetime):
        seconds = _seconds(start_by)
        if seconds is None or not 0.001 <= seconds <= WAIT_LIMIT_SECONDS:
            raise BadInput(
                f"start_by={start_by!r}: give a time with a zone, or at least 0.001 seconds and at "
                "most ten years after the job falls due"
            )
        return
    check_timestamp("start_by", start_by)
    if has_delay:
        raise BadInput(
            "start_by as a time excludes delay: give run_at, or start_by as seconds after the job "
            "falls due"
        )
    if run_at is not None and run_at >= start_by:
        raise BadInput(
            f"start_by={start_by.isoformat()} is not after run_at={run_at.isoformat()}: the job "
            "would be canceled before it may start"
        )


def stored_start_by(start_by: datetime | timedelta | float | None) -> datetime | float | None:
    """A time in UTC, because the stores read an offset with seconds differently; or seconds."""
    return start_by.astimezone(UTC) if isinstance(start_by, datetime) else _seconds(start_by)


def _seconds(start_by: object) -> float | None:
    """None for what is no number."""
    if isinstance(start_by, timedelta):
        return start_by.total_seconds()
    if isinstance(start_by, int | float) and not isinstance(start_by, bool):
        return float(start_by)
    return None


def late_reason(job: Job) -> str:
    assert job.start_by is not None
    return f"it had not started by {job.start_by:%Y-%m-%d %H:%M:%S} UTC (start_by)"
