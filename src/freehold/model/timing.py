"""When a schedule falls due: `Cron`, by a calendar in a time zone, or `Every`, by an interval.

A tick is an instant in UTC. So a local hour that the clock repeats in autumn has two sets of ticks,
and one that it leaves out in spring has none; which of them an expression means is decided by the
rules of Debian's cron, as cronsim has them:

- a fixed time (no star in minute and hour) in the hour that is left out falls due at its end;
- a fixed time in the hour that is repeated falls due once, the first time;
- all others follow real time: ``*/30 * * * *`` falls due every 30 minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from typing import TypeAlias
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from freehold.errors import BadInput

EXPRESSION_LENGTH_LIMIT = 200
LONGEST_INTERVAL_SECONDS = 10 * 366 * 86400
_NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
#: Files of the time zone database that are no zones, or mean another one on each machine.
_NO_ZONES = ("localtime", "posixrules", "Factory", "posix/", "right/")
#: Any moment: an expression that does not match within 50 years of it never will.
_SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression in a time zone: five fields, six with seconds first, or ``@daily``."""

    expression: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        _check_expression(self.expression)
        zone = zone_of(self.zone)
        try:
            first = next(self.ticks_after(_SOME_DAY.astimezone(zone)), None)
        except _PARSE_ERRORS as error:
            if not _fits_without_its_months(self.expression):
                raise BadInput(
                    f"cron expression {self.expression!r}: {_problem(error)}; give five fields "
                    "(minute hour day month weekday), six with seconds first, or one of "
                    f"{', '.join(_NICKNAMES)}"
                ) from error
            first = None
        if first is None:
            raise BadInput(
                f"cron expression {self.expression!r} never falls due: no day fits all its fields"
            )

    def ticks_after(self, start: datetime, _anchor: datetime | None = None) -> Iterator[datetime]:
        """In UTC, in order, without end. Raises errors of an invalid expression."""
        local = start.astimezone(zone_of(self.zone))
        last = start
        expression = self.expression.strip()
        for tick in CronSim(_NICKNAMES.get(expression.lower(), expression), local):
            # A fixed time is found by the local time alone: within a repeated hour the first result
            # can lie before the start.
            if (at := tick.astimezone(UTC)) > last:
                last = at
                yield at

    def __str__(self) -> str:
        return self.expression if self.zone == "UTC" else f"{self.expression} {self.zone}"


@dataclass(frozen=True, slots=True, init=False)
class Every:
    """A fixed interval, counted from the time at which the schedule was stored."""

    seconds: float

    def __init__(
        self,
        *,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
        weeks: float = 0,
    ) -> None:
        given = (seconds, minutes, hours, days, weeks)
        if any(isinstance(each, bool) or not isinstance(each, int | float) for each in given):
            raise BadInput("Every takes numbers, as in Every(minutes=15)")
        total = seconds + 60 * minutes + 3600 * hours + 86400 * days + 7 * 86400 * weeks
        if not 1 <= total <= LONGEST_INTERVAL_SECONDS:
            raise BadInput(
                f"an interval of {total:g} seconds: give at least 1 second, at most ten years, as "
                "in Every(minutes=15)"
            )
        object.__setattr__(self, "seconds", float(total))

    def ticks_after(self, start: datetime, anchor: datetime) -> Iterator[datetime]:
        """In UTC, in order, without end; the first is one interval after the anchor."""
        interval = timedelta(seconds=self.seconds)
        number = max(0, (start - anchor) // interval)
        while True:
            number += 1
            yield anchor + number * interval

    def __str__(self) -> str:
        for name, seconds in (("d", 86400), ("h", 3600), ("min", 60)):
            if self.seconds % seconds == 0:
                return f"every {self.seconds / seconds:g} {name}"
        return f"every {self.seconds:g} s"


Timing: TypeAlias = Cron | Every

_PARSE_ERRORS = (CronSimError, ValueError, TypeError, AssertionError, IndexError)


@lru_cache(maxsize=1000)
def zone_of(name: str) -> tzinfo:
    """The zone of an IANA name. The database of zones is a part of Python's library."""
    if name == "UTC":
        return UTC
    try:
        if not name.startswith(_NO_ZONES):
            return ZoneInfo(name)
    except (OSError, ValueError, TypeError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        pass
    raise BadInput(f"there is no time zone {str(name)[:60]!r}: {_suggested_zone(str(name))}")


def _suggested_zone(name: str) -> str:
    zones = sorted(available_timezones())
    if not zones:
        return "this machine has no time zones at all: install the package tzdata"
    folded = {zone.lower(): zone for zone in zones if "/" in zone or zone == "UTC"}
    cities = {zone.rpartition("/")[2]: zone for zone in folded}
    wanted = name.lower().strip().replace(" ", "_")
    if wanted in cities:
        return f"did you mean {folded[cities[wanted]]}?"
    close = get_close_matches(wanted, folded, n=1)
    if close:
        return f"did you mean {folded[close[0]]}?"
    return "give a name of the IANA database, such as Europe/Berlin"


def _check_expression(expression: object) -> None:
    if not isinstance(expression, str) or not expression.strip():
        raise BadInput(f"cron expression {expression!r}: give a text, such as '0 7 * * mon-fri'")
    if len(expression) > EXPRESSION_LENGTH_LIMIT or not expression.isprintable():
        raise BadInput(
            f"the cron expression has {len(expression)} characters: give at most "
            f"{EXPRESSION_LENGTH_LIMIT}, printable ones"
        )
    if expression.strip().lower() == "@reboot":
        raise BadInput(
            "@reboot is no time: enqueue the job where your program starts, with an idempotency key"
        )


def _fits_without_its_months(expression: str) -> bool:
    """Whether each field alone can be read, as in ``0 0 30 2 *``."""
    fields = expression.split()
    fields[-2:-1] = ["*"]
    try:
        CronSim(" ".join(fields), _SOME_DAY)
    except _PARSE_ERRORS:
        return False
    return True


def _problem(error: Exception) -> str:
    text = str(error)
    return f"{text[0].lower()}{text[1:]}" if text else "it cannot be read"


def first_after(timing: Timing, start: datetime, anchor: datetime) -> datetime | None:
    """None: it never falls due again."""
    try:
        return next(timing.ticks_after(start, anchor), None)
    except OverflowError:  # beyond Python's calendar
        return None


def ticks_between(
    timing: Timing, after: datetime, until: datetime, anchor: datetime, limit: int
) -> tuple[list[datetime], datetime | None]:
    """The first ``limit`` ticks later than ``after`` and not later than ``until``; and the tick
    that follows them, if there is one."""
    found: list[datetime] = []
    try:
        for tick in timing.ticks_after(after, anchor):
            if tick > until or len(found) == limit:
                return found, tick
            found.append(tick)
    except OverflowError:  # beyond Python's calendar
        pass
    return found, None


def last_between(timing: Timing, first: datetime, until: datetime, anchor: datetime) -> datetime:
    """The last tick from ``first``, which is one, to ``until``, in some 40 steps however many lie
    between them: halves the time that is left."""
    while (following := first_after(timing, first, anchor)) is not None and following <= until:
        middle = first + (until - first) / 2
        later = first_after(timing, middle, anchor)
        if later is not None and later <= until:
            first = later
        else:  # no tick lies between the middle and the end
            first, until = following, middle
    return first
