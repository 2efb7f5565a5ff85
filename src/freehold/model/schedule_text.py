"""The definition of a schedule as the JSON text that the stores keep."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from freehold.errors import BadInput
from freehold.model.job import NewJob
from freehold.model.policy import pack, unpack
from freehold.model.schedule import CatchUp, Overlap, ScheduleDefinition
from freehold.model.timing import Cron, Every

_PLAIN = NewJob(task="any")
_APART = ("args", "policy")


class _Stored(msgspec.Struct, kw_only=True, omit_defaults=True):
    job: dict[str, Any]
    args: str
    policy: dict[str, Any] = {}
    cron: str | None = None
    zone: str = "UTC"
    every_seconds: float | None = None
    overlap: Overlap = "skip"
    catch_up: CatchUp = "last"
    within_seconds: float | None = None
    jitter_seconds: float = 0.0
    ends_at: datetime | None = None


def to_text(definition: ScheduleDefinition) -> str:
    """Two definitions are equal if and only if their texts are."""
    timing, job = definition.timing, definition.job
    stored = _Stored(
        job={
            field: getattr(job, field)
            for field in NewJob.__struct_fields__
            if field not in _APART and getattr(job, field) != getattr(_PLAIN, field)
        },
        args=job.args.decode(),
        policy=pack(job.policy) or {},
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
        stored = msgspec.json.decode(text, type=_Stored)
        job = msgspec.convert(stored.job, NewJob)
        timing = (
            Cron(stored.cron or "", stored.zone)
            if stored.every_seconds is None
            else Every(seconds=stored.every_seconds)
        )
    except msgspec.MsgspecError as error:
        raise BadInput(f"the definition of schedule {name} cannot be read: {error}") from error
    return ScheduleDefinition(
        name=name,
        timing=timing,
        job=msgspec.structs.replace(
            job, args=stored.args.encode(), policy=unpack(msgspec.json.encode(stored.policy))
        ),
        overlap=stored.overlap,
        catch_up=stored.catch_up,
        within_seconds=stored.within_seconds,
        jitter_seconds=stored.jitter_seconds,
        ends_at=stored.ends_at,
    )
