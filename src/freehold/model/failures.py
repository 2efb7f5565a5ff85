"""Failures grouped by task, type of the error, and message without its numbers and ids. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache

import msgspec

#: Jobs of a group that are named, the newest.
IDS_SHOWN = 100
_MESSAGE_LIMIT = 200
#: As many as one list examines.
_MESSAGES_KEPT = 8_192

_IDS = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"  # UUID
    r"|\b0x[0-9a-f]+\b"
    r"|\b(?=[a-z]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}\b",  # a hash, which has digits and letters
    re.IGNORECASE,
)
_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")


class Failure(msgspec.Struct, frozen=True):
    """A job that failed, without its arguments and its traceback."""

    id: int
    task: str
    error: str | None
    message: str | None
    at: datetime


class FailureGroup(msgspec.Struct, frozen=True):
    """Failures that are probably the same. ``message``: with ``…`` in the place of numbers and ids.
    ``ids``: the newest of its jobs."""

    task: str
    error: str | None
    message: str
    count: int
    first_at: datetime
    last_at: datetime
    ids: tuple[int, ...]


class Failures(msgspec.Struct, frozen=True):
    """The largest group first. ``looked_at``: how many unsuccessful jobs were examined, the newest,
    at most ``bound``."""

    groups: tuple[FailureGroup, ...]
    looked_at: int
    bound: int


def group(failures: Iterable[Failure]) -> tuple[FailureGroup, ...]:
    found: dict[tuple[str, str | None, str], list[Failure]] = {}
    for each in failures:
        key = each.task, each.error, without_ids(each.message or "")
        found.setdefault(key, []).append(each)
    groups = [_group(key, members) for key, members in found.items()]
    return tuple(sorted(groups, key=lambda each: (-each.count, each.task, each.message)))


def _group(key: tuple[str, str | None, str], members: list[Failure]) -> FailureGroup:
    times = [each.at for each in members]
    ids = sorted((each.id for each in members), reverse=True)[:IDS_SHOWN]
    return FailureGroup(*key, len(members), min(times), max(times), tuple(ids))


@lru_cache(maxsize=_MESSAGES_KEPT)
def without_ids(message: str) -> str:
    """The first line of a message, equal for jobs that failed alike. A list that is read again and
    again has mostly the same messages."""
    line = message.strip().partition("\n")[0]
    shown = _NUMBERS.sub("…", _IDS.sub("…", line))
    return shown if len(shown) <= _MESSAGE_LIMIT else shown[: _MESSAGE_LIMIT - 1] + "…"
