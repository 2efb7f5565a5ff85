"""Times on the command line: timestamps with a zone, durations with a unit, and ages."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import click

_DURATION = re.compile(r"(\d{1,12}(?:\.\d+)?)\s*(s|m|h|d)?", re.ASCII)
_LONGEST_AGE_SECONDS = 100 * 365 * 86400.0
_UNIT_SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def timestamp(value: str) -> datetime:
    """ISO 8601 with a time zone: without one, the time would depend on the machine."""
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not a time: write it as 2030-01-31T12:00:00Z."
        ) from None
    if found.utcoffset() is None:
        raise click.BadParameter(f"{value!r} has no time zone: add Z, or an offset as +02:00.")
    return found


def duration(value: str) -> float:
    """Seconds, or a number with a unit: 90, 5m, 2h, 1d."""
    match = _DURATION.fullmatch(value.strip())
    if match is None:
        raise click.BadParameter(f"{value!r} is not a duration: write 90, 90s, 5m, 2h or 1d.")
    return float(match[1]) * _UNIT_SECONDS[match[2]]


def timestamp_or_age(value: str) -> datetime | timedelta:
    """A timestamp, or how long ago: 90s, 5m, 2h, 1d."""
    if not _DURATION.fullmatch(value.strip()):
        return timestamp(value)
    seconds = duration(value)
    if seconds > _LONGEST_AGE_SECONDS:
        raise click.BadParameter(f"{value!r} is more than 100 years ago.")
    return timedelta(seconds=seconds)
