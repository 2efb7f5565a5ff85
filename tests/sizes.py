"""Sizes of tests in the short form (`scripts/test`) and in the long one (`scripts/test --long`)."""

from __future__ import annotations

import os

#: Set by `--long` in tests/conftest.py, so that the processes of xdist have it too.
LONG_VARIABLE = "FREEHOLD_TEST_LONG"


def is_long() -> bool:
    return os.environ.get(LONG_VARIABLE) == "1"


def sized(name: str, *, short: int, long: int) -> int:
    """FREEHOLD_TEST_NAME in the environment overrides both."""
    chosen = os.environ.get(f"FREEHOLD_TEST_{name}")
    return int(chosen) if chosen is not None else long if is_long() else short
