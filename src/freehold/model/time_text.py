"""Times as people type them: timestamps with a zone, and spans with a unit. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from freehold.errors import BadInput

_SPAN = re.compile(r"(\d{1,12}(?:\.\d+)?)\s*(s|m|h|d)?", re.ASCII)
_LONGEST_AGE_SECONDS = 100 * 365 * 86400.0
_UNIT_SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_timestamp(text: str) -> datetime:
    """ISO 8601 with a time zone: without one, the time would depend on the machine."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"{text!r} is not a time: write it as 2030-01-31T12:00:00Z") from None
    if found.utcoffset() is None:
        raise BadInput(f"{text!r} has no time zone: add Z, or an offset as +02:00")
    return found


def parse_span(text: str) -> float:
    """Seconds, or a number with a unit: 90, 5m, 2h, 1d."""
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        raise BadInput(f"{text!r} is not a duration: write 90, 90s, 5m, 2h or 1d")
    return float(match[1]) * _UNIT_SECONDS[match[2]]


def parse_timestamp_or_span(text: str) -> datetime | float:
    """A timestamp, or seconds: 90, 5m, 2h, 1d."""
    return parse_span(text) if _SPAN.fullmatch(text.strip()) else parse_timestamp(text)


def parse_timestamp_or_age(text: str) -> datetime | timedelta:
    """A timestamp, or how long ago: 90s, 5m, 2h, 1d."""
    if not _SPAN.fullmatch(text.strip()):
        return parse_timestamp(text)
    seconds = parse_span(text)
    if seconds > _LONGEST_AGE_SECONDS:
        raise BadInput(f"{text!r} is more than 100 years ago")
    return timedelta(seconds=seconds)
