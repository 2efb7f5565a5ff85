"""Stages as SQL lists, from the model: what `{holds_lane}` and the like stand for in statements."""

from __future__ import annotations

from collections.abc import Iterable

from leasehold.model.limit import RATE_SLOTS
from leasehold.model.state import HOLDS_LANE, IN_LANE, Stage


def _letters(stages: Iterable[Stage]) -> str:
    chosen = set(stages)
    return ",".join(f"'{stage.value}'" for stage in Stage if stage in chosen)


LETTERS = {
    "holds_lane": _letters(HOLDS_LANE),
    "in_lane": _letters(IN_LANE),
    "rate_slots": str(RATE_SLOTS),
}
