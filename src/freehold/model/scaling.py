"""How many workers to run: up at once, down slowly, without flapping. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
