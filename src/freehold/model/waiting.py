"""Keys that a job holds until a worker takes it: unique until the start, debounce, throttle.

At most one job of a task waits with such a key. A second call finds it, and may replace what it
carries. The claim takes the job out of the key's index, so that the next call makes a new job. A
job that returns from a worker (a retry, a snooze, a lost lease, a drain) has no such key any more,
and so never meets the newer one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias

import msgspec

from freehold.errors import BadInput
from freehold.model.names import check_key
from freehold.model.retry import WAIT_LIMIT_SECONDS

Until: TypeAlias = Literal["end", "start"]
Replaceable: TypeAlias = Literal["args", "meta", "priority", "run_at", "tags"]
REPLACEABLE: tuple[Replaceable, ...] = ("args", "meta", "priority", "run_at", "tags")
#: What the later calls of a debounce and of a throttle bring; their times are their own rule.
_LATEST: tuple[Replaceable, ...] = ("args", "meta")


@dataclass(frozen=True, slots=True)
class Unique:
    """One job with this key, until it ends or until a worker takes it.

    ``until="end"`` is the same as ``unique_key``. ``until="start"``: one job waits beside one that
    runs; ``replace`` names what a later call changes in the job that waits.
    """

    key: str
    until: Until = "end"
    replace: tuple[Replaceable, ...] = ()

    def __post_init__(self) -> None:
        check_key("unique key", self.key)
        if self.until not in ("end", "start"):
            raise BadInput(f"until={self.until!r}: choose end or start")
        names: object = self.replace
        if not isinstance(names, tuple | list):
            raise BadInput(f"replace={names!r}: give a tuple, such as ({names!r},)")
        for name in names:
            if name not in REPLACEABLE:
                raise BadInput(f"replace={name!r}: choose of {', '.join(REPLACEABLE)}")
        if self.replace and self.until == "end":
            raise BadInput(
                'replace needs until="start": until="end" the running job has the key, and the new '
                "values would be lost"
            )


@dataclass(frozen=True, slots=True)
class Debounce:
    """The job runs ``seconds`` after the last call with this key, at most ``at_most`` seconds after
    the first, with the arguments of the last."""

    key: str
    seconds: float | timedelta
    at_most: float | timedelta | None = None

    def __post_init__(self) -> None:
        check_key("debounce key", self.key)
        seconds = span_seconds("debounce seconds", self.seconds)
        if self.at_most is not None and span_seconds("debounce at_most", self.at_most) < seconds:
            raise BadInput(
                f"at_most={self.at_most!r} is less than seconds={self.seconds!r}: give more"
            )


@dataclass(frozen=True, slots=True)
class Throttle:
    """The first job runs at once, then at most one becomes due every ``seconds``: the calls within
    that time share it, and the last of them gives the arguments."""

    key: str
    seconds: float | timedelta

    def __post_init__(self) -> None:
        check_key("throttle key", self.key)
        span_seconds("throttle seconds", self.seconds)


class Waiting(msgspec.Struct, frozen=True):
    """The key of a new job that it holds until a worker takes it, and what a call with the same key
    changes in the job that waits. ``throttle_seconds``: the store chooses the time."""

    key: str
    replace: tuple[Replaceable, ...] = ()
    at_most_seconds: float | None = None
    throttle_seconds: float | None = None


WaitingOption: TypeAlias = Unique | Debounce | Throttle


def chosen(
    unique: object,
    debounce: object,
    throttle: object,
    *,
    unique_key: str | None,
    idempotency_key: str | None,
    has_time: bool,
) -> WaitingOption | None:
    """The one of these options that is given. Raises BadInput if they exclude each other."""
    for name, value, kind in (
        ("unique", unique, Unique),
        ("debounce", debounce, Debounce),
        ("throttle", throttle, Throttle),
    ):
        if value is not None and not isinstance(value, kind):
            raise BadInput(f"{name}={value!r}: give a {kind.__name__} of freehold")
    given = [each for each in (unique, debounce, throttle) if each is not None]
    if len(given) + (unique_key is not None) > 1:
        raise BadInput("unique_key, unique, debounce and throttle exclude each other: give one")
    if not given:
        return None
    option = given[0]
    assert isinstance(option, Unique | Debounce | Throttle)
    if isinstance(option, Unique) and option.until == "end":
        return option
    if idempotency_key is not None:
        raise BadInput(
            "idempotency_key excludes unique until the start, debounce and throttle: give one of "
            "them"
        )
    if has_time and not isinstance(option, Unique):
        raise BadInput("debounce and throttle choose the time: leave out run_at and delay")
    return option


def waiting_of(task: str, option: WaitingOption | None) -> Waiting | None:
    """Keys belong to their task: the arguments of one task never replace those of another."""
    if option is None or (isinstance(option, Unique) and option.until == "end"):
        return None
    if isinstance(option, Debounce):
        at_most = option.at_most
        return Waiting(
            f"debounce/{task}/{option.key}",
            (*_LATEST, "run_at"),
            None if at_most is None else span_seconds("at_most", at_most),
        )
    if isinstance(option, Throttle):
        seconds = span_seconds("throttle seconds", option.seconds)
        return Waiting(f"throttle/{task}/{option.key}", _LATEST, throttle_seconds=seconds)
    return Waiting(f"unique/{task}/{option.key}", tuple(sorted(set(option.replace))))


def span_seconds(what: str, span: Any) -> float:
    seconds: Any = span.total_seconds() if isinstance(span, timedelta) else span
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0.001 <= seconds <= WAIT_LIMIT_SECONDS:
        raise BadInput(f"{what}={span!r}: give at least 0.001 seconds, at most ten years")
    return float(seconds)


def with_waiting_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options as a command line, a request or SQL has them, with flat names such as
    ``debounce_key``, as those of `Task.using`. Missing ones are left out or None."""
    options = {name: value for name, value in given.items() if value is not None}
    until, replace = options.pop("unique_until", None), tuple(options.pop("replace", None) or ())
    if until is not None or replace:
        if "unique_key" not in options:
            raise BadInput("unique_until and replace need a unique_key")
        options["unique"] = Unique(options.pop("unique_key"), until or "end", replace)
    key, seconds = options.pop("debounce_key", None), options.pop("debounce_seconds", None)
    at_most = options.pop("debounce_at_most_seconds", None)
    if (key is None) != (seconds is None) or (key is None and at_most is not None):
        raise BadInput("debounce_key and debounce_seconds belong together: give both")
    if key is not None:
        options["debounce"] = Debounce(key, seconds, at_most)
    key, seconds = options.pop("throttle_key", None), options.pop("throttle_seconds", None)
    if (key is None) != (seconds is None):
        raise BadInput("throttle_key and throttle_seconds belong together: give both")
    if key is not None:
        options["throttle"] = Throttle(key, seconds)
    return options
