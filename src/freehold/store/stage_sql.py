"""Stages as SQL lists, from the model: what `{holds_lane}` and the like stand for in statements."""

from __future__ import annotations

from collections.abc import Iterable

from freehold.model.limit import RATE_SLOTS
from freehold.model.state import HOLDS_LANE, IN_LANE, Stage


def _letter_list(stages: Iterable[Stage]) -> str:
    chosen = set(stages)
    return ",".join(f"'{stage.value}'" for stage in Stage if stage in chosen)


STAGE_SQL = {
    "holds_lane": _letter_list(HOLDS_LANE),
    "in_lane": _letter_list(IN_LANE),
    "rate_slots": str(RATE_SLOTS),
}
