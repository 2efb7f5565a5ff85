"""How many workers to run: up at once, down slowly, without flapping. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from freehold.errors import BadSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRule:
    """The bounds, and how long a worker must be unneeded before it is stopped."""

    default_count: int = 2
    max_count: int = 8
    concurrency: int = 10
    cooldown_seconds: float = 30.0
    #: While the oldest ready job waits longer than this, each check adds one worker; 0 means that
    #: only the number of ready jobs counts.
    late_seconds: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.default_count <= self.max_count:
            raise BadSettings(
                f"default_count={self.default_count}, max_count={self.max_count}: give "
                "1 <= default_count <= max_count"
            )


@dataclass(frozen=True, slots=True)
class WorkerCount:
    """How many worker processes a tenant has of its own."""

    default_count: int
    max_count: int

    def __post_init__(self) -> None:
        if not 1 <= self.default_count <= self.max_count:
            raise BadSettings("give 1 <= default_count <= max_count")


def worker_count_of(fields: Any, where: str) -> WorkerCount:
    """``default_count = 1``, ``max_count = 4``: one of them, or both."""
    names = ("default_count", "max_count")
    if not isinstance(fields, dict) or not fields or not fields.keys() <= set(names):
        raise BadSettings(f"{where}: give default_count, or max_count, or both")
    if any(type(value) is not int for value in fields.values()):
        raise BadSettings(f"{where}: give whole numbers of worker processes")
    low: int = fields.get("default_count", 1)
    high: int = fields.get("max_count", low)
    try:
        return WorkerCount(low, high)
    except BadSettings as error:
        raise BadSettings(f"{where}: {error}") from None


def parse_worker_count(text: str) -> WorkerCount:
    """``2``, or ``1-4``."""
    low, _, high = text.partition("-")
    if not low.isdecimal() or not (high or low).isdecimal() or text.endswith("-"):
        raise BadSettings(f"{text!r} is no number of worker processes: write it as 2, or as 1-4")
    return WorkerCount(int(low), int(high or low))


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Ready jobs, how long the oldest of them has waited, and jobs leased by the workers."""

    ready: int
    leased: int = 0
    oldest_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How many workers are wanted, and since when fewer would be enough."""

    wanted: int
    quiet_since: float | None = None


def desired(rule: ScaleRule, load: Load) -> int:
    """One worker for every `concurrency` ready or leased jobs, within the bounds."""
    needed = math.ceil((load.ready + load.leased) / rule.concurrency)
    return min(max(needed, rule.default_count), rule.max_count)


def rescale(rule: ScaleRule, scale: Scale, load: Load, now: float) -> Scale:
    """Up at once. Down only after fewer workers were enough for a whole cooldown."""
    goal = desired(rule, load)
    if 0 < rule.late_seconds < load.oldest_seconds and load.ready:
        goal = min(max(goal, scale.wanted + 1), rule.max_count)
    if goal >= scale.wanted:
        return Scale(wanted=goal)
    if scale.quiet_since is None:
        return Scale(wanted=scale.wanted, quiet_since=now)
    if now - scale.quiet_since < rule.cooldown_seconds:
        return scale
    return Scale(wanted=goal)
