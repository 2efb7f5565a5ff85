"""What is raised where a package of an extra is not installed."""

from __future__ import annotations

from freehold.errors import BadSettings


def missing(error: ImportError, package: str, install: str) -> Exception:
    """``error`` itself, if it is about another package."""
    if (error.name or "").partition(".")[0] != package:
        return error
    return BadSettings(f"{package} is not installed ({error}): install `{install}`")
