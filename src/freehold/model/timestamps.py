"""Moments that a person or program hands in: with a time zone, and within what stores can tell."""

from __future__ import annotations

from datetime import UTC, datetime

from freehold.errors import BadInput

# Near the ends of Python's calendar a change of time zone leaves it, and a row that holds such
# a moment could never be read again.
EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)


def check_timestamp(what: str, moment: object) -> datetime:
    if not isinstance(moment, datetime):
        raise BadInput(f"{what}={moment!r}: give a datetime with a time zone")
    if moment.utcoffset() is None:
        raise BadInput(
            f"{what}={moment!r} has no time zone: give an aware datetime, such as "
            "datetime.now(UTC) + timedelta(hours=1)"
        )
    if not EARLIEST <= moment <= LATEST:
        raise BadInput(f"{what}={moment!r}: give a time from the year 1900 to 9000")
    return moment
