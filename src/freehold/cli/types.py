"""Times on the command line: moments with a zone, and spans with a unit."""

from __future__ import annotations

import re
from datetime import datetime

import click

_SPAN = re.compile(r"(\d{1,12}(?:\.\d+)?)\s*(s|m|h|d)?", re.ASCII)
_UNIT_SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def moment(value: str) -> datetime:
    """ISO 8601 with a time zone: a bare time would mean another moment on another machine."""
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not a time: write it as 2030-01-31T12:00:00Z."
        ) from None
    if found.utcoffset() is None:
        raise click.BadParameter(f"{value!r} has no time zone: add Z, or an offset as +02:00.")
    return found


def span(value: str) -> float:
    """Seconds, or a number with a unit: 90, 5m, 2h, 1d."""
    match = _SPAN.fullmatch(value.strip())
    if match is None:
        raise click.BadParameter(f"{value!r} is not a span of time: write 90, 90s, 5m, 2h or 1d.")
    return float(match[1]) * _UNIT_SECONDS[match[2]]
