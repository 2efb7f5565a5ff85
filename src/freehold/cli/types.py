"""Times on the command line: timestamps with a zone, durations with a unit, and ages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

import click

from freehold.errors import BadInput
from freehold.model.time_text import (
    parse_span,
    parse_timestamp,
    parse_timestamp_or_age,
    parse_timestamp_or_span,
)

T = TypeVar("T")


def timestamp(value: str) -> datetime:
    return _parsed(parse_timestamp, value)


def duration(value: str) -> float:
    return _parsed(parse_span, value)


def timestamp_or_duration(value: str) -> datetime | float:
    return _parsed(parse_timestamp_or_span, value)


def timestamp_or_age(value: str) -> datetime | timedelta:
    return _parsed(parse_timestamp_or_age, value)


def _parsed(parse: Callable[[str], T], value: str) -> T:
    try:
        return parse(value)
    except BadInput as error:
        raise click.BadParameter(f"{error}.") from None
