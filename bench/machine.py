"""The machine and the versions of a run; figures mean nothing without them."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PACKAGES = ("freehold", "psycopg", "asyncpg", "uvloop", "msgspec")


def describe() -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_gib": _memory_gib(),
            "system": f"{platform.system()} {platform.release()}",
        },
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Of this interpreter and the packages installed for it."""
    installed = {name: version for name in PACKAGES if (version := _version(name))}
    return {"python": platform.python_version(), **installed}


def load_average() -> float:
    return round(os.getloadavg()[0], 2)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_gib() -> float:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
