"""Timestamps: from outside, with a time zone and within the range of the stores; and as a store
returns them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from freehold.errors import BadInput

#: PostgreSQL returns datetimes; SQLite returns microseconds since 1970, and so does PostgreSQL
#: where few callers read the time: a text would depend on the DateStyle of the session.
StoredTime: TypeAlias = datetime | int

# Near the ends of Python's calendar a conversion of the time zone overflows, and a row with such a
# timestamp could never be read again.
EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def check_timestamp(what: str, value: object) -> datetime:
    if not isinstance(value, datetime):
        raise BadInput(f"{what}={value!r}: give a datetime with a time zone")
    if value.utcoffset() is None:
        raise BadInput(
            f"{what}={value!r} has no time zone: give an aware datetime, such as "
            "datetime.now(UTC) + timedelta(hours=1)"
        )
    if not EARLIEST <= value <= LATEST:
        raise BadInput(f"{what}={value!r}: give a time from the year 1900 to 9000")
    return value


def time_of(value: StoredTime) -> datetime:
    if isinstance(value, int):
        return _EPOCH + timedelta(microseconds=value)
    return value.astimezone(UTC)


def micros_of(value: datetime) -> int:
    """As SQLite stores it."""
    return (value - _EPOCH) // timedelta(microseconds=1)


def maybe_time(value: StoredTime | None) -> datetime | None:
    return None if value is None else time_of(value)
