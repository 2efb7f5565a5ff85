"""How many may run at once, and how many may start within a time.

A limit stands on a queue, on all queues together (``*``), or on a `limit_key`. A rule for
``github:*`` is one for each key that begins with ``github:``, every key for itself.

A rate is kept exactly, in any window of its period and not only between round hours: starts
are counted in slots of a twentieth of the period, and a slot counts until it is out of the
window as a whole. So at most one slot's worth of starts comes later than it might.
"""

from __future__ import annotations

import re

import msgspec

from leasehold.errors import BadInput

#: The name that stands for all queues together.
ALL_QUEUES = "*"
RATE_SLOTS = 20
LIMIT_CEILING = 1_000_000
_RATE = re.compile(r"(\d+)\s*/\s*(\d+(?:\.\d+)?)?\s*([a-z]*)")
_UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "second": 1.0, "m": 60.0, "min": 60.0, "minute": 60.0,
          "h": 3600.0, "hour": 3600.0, "d": 86400.0, "day": 86400.0}  # fmt: skip


class Rate(msgspec.Struct, frozen=True):
    """At most so many starts within any so many seconds."""

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
    """At most so many live leases, at most so many starts in a time; None: no such limit."""

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


def key_class(key: str) -> str:
    """The rule that a key falls under if it has none of its own."""
    return key.partition(":")[0] + ":*"
