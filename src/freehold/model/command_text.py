"""Commands of `freehold` as text that people copy into a shell."""

from __future__ import annotations

import re


def typed(name: str) -> str:
    """As it can be typed into a shell."""
    return name if re.fullmatch(r"[\w.@:/-]+", name) else "'" + name.replace("'", "'\\''") + "'"


def command(words: str, tenant: str | None) -> str:
    """For the jobs of the tenant, if there is one."""
    return f"freehold {words}" + ("" if tenant is None else f" --tenant {typed(tenant)}")
