"""Stages in SQL: `{ready}` and the other names in braces, and the bytes that stand for them.

`stages.sql` is the one list of those bytes. Everything else uses the names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files

from freehold.model.job import LONGEST_LEASE_SECONDS
from freehold.model.limit import RATE_SLOTS
from freehold.model.state import HOLDS_LANE, IN_LANE, Stage

_ROWS = re.sub(r"--[^\n]*\n", "", files("freehold.store").joinpath("stages.sql").read_text())
_BYTE_OF: dict[Stage, str] = {
    Stage(name): byte for name, byte in re.findall(r"\('(\w+)',\s*'(\w)'", _ROWS)
}
_STAGE_OF = {byte: stage for stage, byte in _BYTE_OF.items()}


def stage_byte(stage: Stage) -> str:
    """What is stored in the column `stage`."""
    return _BYTE_OF[stage]


def stage_of(byte: str) -> Stage:
    """The stage that a byte of the column stands for."""
    return _STAGE_OF[byte]


def _listed(stages: Iterable[Stage]) -> str:
    chosen = set(stages)
    return ", ".join(f"'{_BYTE_OF[stage]}'" for stage in Stage if stage in chosen)


#: Stands in statements and migrations alike.
STAGE_NAMES = {stage.value: f"'{byte}'" for stage, byte in _BYTE_OF.items()} | {
    "stages": _ROWS.strip()
}
#: Lists of stages follow the model, which may change: for statements only, never for migrations.
STAGE_SQL = STAGE_NAMES | {
    "holds_lane": _listed(HOLDS_LANE),
    "in_lane": _listed(IN_LANE),
    "rate_slots": str(RATE_SLOTS),
    "longest_lease": str(LONGEST_LEASE_SECONDS),
}
