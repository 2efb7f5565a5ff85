"""Limits: how many jobs may run at once, and how many may start within a time.

A limit applies to a queue, to all queues together (``*``), or to a `limit_key`. The rule
``github:*`` applies to each key with the prefix ``github:`` separately.

A rate holds in any window of its period, not only between round hours. Starts are counted in slots
of a twentieth of the period, and a slot counts until all of it is outside the window. So a start
comes at most one slot later than it could.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

import msgspec

from freehold.errors import BadInput, BadSettings

#: The name of all queues together.
ALL_QUEUES = "*"
#: The name of all tenants of one database together, which share a limit.
ALL_TENANTS = "**"
RATE_SLOTS = 20
LIMIT_CEILING = 1_000_000
_RATE = re.compile(r"(\d+)\s*/\s*(\d+(?:\.\d+)?)?\s*([a-z]*)")
_UNITS = {
    "ms": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "m": 60.0,
    "min": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
}


class Rate(msgspec.Struct, frozen=True):
    """At most ``starts`` starts within any ``seconds`` seconds."""

    starts: int
    seconds: float

    def __post_init__(self) -> None:
        if not 1 <= self.starts <= LIMIT_CEILING or not 0.02 <= self.seconds <= 366 * 86400:
            raise BadInput(
                f"rate {self.starts}/{self.seconds:g}s: give 1 to {LIMIT_CEILING:,} starts within "
                "0.02 s to a year"
            )

    def __str__(self) -> str:
        return f"{self.starts}/{self.seconds:g}s"


class Limit(msgspec.Struct, frozen=True):
    """A maximum of live leases, and a rate of starts; None means no such limit."""

    max_leases: int | None = None
    rate: Rate | None = None

    def __post_init__(self) -> None:
        if self.max_leases is not None and not 0 <= self.max_leases <= LIMIT_CEILING:
            raise BadInput(f"a limit of {self.max_leases}: give 0 to {LIMIT_CEILING:,}")

    def __bool__(self) -> bool:
        return self.max_leases is not None or self.rate is not None

    def __str__(self) -> str:
        parts = [] if self.max_leases is None else [f"{self.max_leases} at a time"]
        parts += [] if self.rate is None else [f"{self.rate} starts"]
        return ", ".join(parts) or "no limit"


NO_LIMIT = Limit()


def rate_of(text: str) -> Rate:
    """``100/min``, ``5/2s``, ``1000/day``."""
    found = _RATE.fullmatch(text.strip().lower())
    unit = _UNITS.get(found[3] or "s") if found else None
    if found is None or unit is None or not (found[2] or found[3]):
        raise BadInput(f"rate {text!r}: write starts per time, such as 100/min, 5/2s or 1000/day")
    return Rate(int(found[1]), float(found[2] or 1) * unit)


class QueueRule(msgspec.Struct, frozen=True):
    """The configured weight and limit of a queue."""

    weight: float | None = None
    limit: Limit = NO_LIMIT


def queue_rule_of(fields: Any, where: str) -> QueueRule:
    """``weight = 5``, ``max = 7``, ``rate = "100/min"``, each optional."""
    _check_fields(fields, ("weight", "max", "rate"), where)
    weight = fields.get("weight")
    if weight is not None and not (_is_number(weight) and 0.001 <= weight <= 1_000_000):
        raise BadSettings(f"{where}: weight = {weight!r}: give a number from 0.001 to 1000000")
    return QueueRule(None if weight is None else float(weight), _limit_of(fields, where))


def limit_of(fields: Any, where: str) -> Limit:
    """``max = 7``, ``rate = "100/min"``: one of them, or both."""
    _check_fields(fields, ("max", "rate"), where)
    limit = _limit_of(fields, where)
    if not limit:
        raise BadSettings(f"{where}: give max, or rate, or both")
    return limit


def _limit_of(fields: dict[str, Any], where: str) -> Limit:
    at_most, rate = fields.get("max"), fields.get("rate")
    if at_most is not None and type(at_most) is not int:
        raise BadSettings(f"{where}: max = {at_most!r}: give a whole number")
    if rate is not None and not isinstance(rate, str):
        raise BadSettings(f'{where}: rate = {rate!r}: write it as a string, such as "100/min"')
    try:
        return Limit(at_most, None if rate is None else rate_of(rate))
    except BadInput as error:
        raise BadSettings(f"{where}: {error}") from None


def _check_fields(fields: Any, known: tuple[str, ...], where: str) -> None:
    if not isinstance(fields, dict):
        raise BadSettings(f"{where}: give a table with {', '.join(known)}")
    for name in fields:
        if name not in known:
            close = get_close_matches(name, known, n=1, cutoff=0.5)
            help = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
            raise BadSettings(f"{where}: there is no {name} here; {help}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
