"""The definition of a schedule, and of a job that is stored later, as the JSON text that the stores
keep."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from freehold.decoders import decoder
from freehold.errors import BadInput
from freehold.model.job import DEFAULT_QUEUE, NewJob
from freehold.model.policy import DEFAULT_POLICY, pack, unpack
from freehold.model.retry import DEFAULT_RETRY
from freehold.model.schedule import CatchUp, Overlap, ScheduleDefinition
from freehold.model.timing import Cron, Every


class StoredJob(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The fields of a `NewJob` that jobs of a schedule, or callbacks of a flow, can have."""

    task: str
    args: str = "{}"
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    target: str | None = None
    limit_key: str | None = None
    max_attempts: int = DEFAULT_RETRY.max_attempts
    timeout_seconds: float | None = None
    tags: tuple[str, ...] = ()
    policy: dict[str, Any] = {}
    meta_json: str | None = None
    start_by: float | None = None
    #: Of callbacks only.
    run_at: datetime | None = None
    delay_seconds: float | None = None


class _Stored(msgspec.Struct, kw_only=True, omit_defaults=True):
    job: StoredJob
    cron: str | None = None
    zone: str = "UTC"
    every_seconds: float | None = None
    overlap: Overlap = "skip"
    catch_up: CatchUp = "last"
    within_seconds: float | None = None
    jitter_seconds: float = 0.0
    ends_at: datetime | None = None


_read = decoder(_Stored).decode
_read_job = decoder(StoredJob).decode
_COPIED = tuple(each for each in StoredJob.__struct_fields__ if each not in ("args", "policy"))


def to_text(definition: ScheduleDefinition) -> str:
    """Two definitions are equal if and only if their texts are."""
    timing, job = definition.timing, definition.job
    stored = _Stored(
        job=_stored_job(job),
        cron=timing.expression if isinstance(timing, Cron) else None,
        zone=timing.zone if isinstance(timing, Cron) else "UTC",
        every_seconds=timing.seconds if isinstance(timing, Every) else None,
        overlap=definition.overlap,
        catch_up=definition.catch_up,
        within_seconds=definition.within_seconds,
        jitter_seconds=definition.jitter_seconds,
        ends_at=definition.ends_at,
    )
    return msgspec.json.encode(stored, order="sorted").decode()


@lru_cache(maxsize=1000)  # a sweep reads the same schedules again and again
def from_text(name: str, text: str) -> ScheduleDefinition:
    """Raises BadInput if it was not written by this version, or its zone is not known here."""
    try:
        stored = _read(text)
    except msgspec.MsgspecError as error:
        raise BadInput(f"the definition of schedule {name} cannot be read: {error}") from error
    job = _new_job(stored.job)
    return ScheduleDefinition(
        name=name,
        timing=(
            Cron(stored.cron or "", stored.zone)
            if stored.every_seconds is None
            else Every(seconds=stored.every_seconds)
        ),
        job=job,
        overlap=stored.overlap,
        catch_up=stored.catch_up,
        within_seconds=stored.within_seconds,
        jitter_seconds=stored.jitter_seconds,
        ends_at=stored.ends_at,
    )


def job_text(job: NewJob) -> str:
    """A job that is stored later: the callback of a flow."""
    return msgspec.json.encode(_stored_job(job)).decode()


def job_from_text(text: str) -> NewJob:
    """Raises BadInput if it was not written by this version."""
    try:
        return _new_job(_read_job(text))
    except msgspec.MsgspecError as error:
        raise BadInput(f"the definition of a callback cannot be read: {error}") from error


def _stored_job(job: NewJob) -> StoredJob:
    return StoredJob(
        args=job.args.decode(),
        policy=pack(job.policy) or {},
        **{field: getattr(job, field) for field in _COPIED},
    )


def _new_job(stored: StoredJob) -> NewJob:
    return NewJob(
        args=stored.args.encode(),
        policy=unpack(msgspec.json.encode(stored.policy)) if stored.policy else DEFAULT_POLICY,
        **{field: getattr(stored, field) for field in _COPIED},
    )
