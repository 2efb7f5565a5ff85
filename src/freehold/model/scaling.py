"""How many workers there should be: up at once, down slowly, never flapping. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from freehold.errors import BadSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRule:
    """The bounds, and how long it must have been quiet before a worker is let go."""

    default_count: int = 2
    max_count: int = 8
    concurrency: int = 10
    cooldown_seconds: float = 30.0
    #: With the oldest job waiting longer than this there is one worker more at each look,
    #: however few wait; 0 means that only the depth counts.
    late_seconds: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.default_count <= self.max_count:
            raise BadSettings(
                f"default_count={self.default_count}, max_count={self.max_count}: give "
                "1 <= default_count <= max_count"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the manager has seen: jobs that can be claimed, how long the oldest of them has waited,
    and jobs in its workers' hands."""

    ready: int
    leased: int = 0
    oldest_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How many workers are wanted now, and since when fewer would do."""

    wanted: int
    quiet_since: float | None = None


def desired(rule: ScaleRule, load: Load) -> int:
    """One worker for each `concurrency` jobs that are ready or running, within the bounds."""
    needed = math.ceil((load.ready + load.leased) / rule.concurrency)
    return min(max(needed, rule.default_count), rule.max_count)


def rescale(rule: ScaleRule, scale: Scale, load: Load, now: float) -> Scale:
    """Up at once. Down to what is needed once fewer have sufficed for a whole cooldown."""
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
