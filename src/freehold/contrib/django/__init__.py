"""Django's Tasks on Freehold, for Django 6.0 and newer, and for 5.2 with `django-tasks`.

The names are imported at their first use: Django imports this package before its settings are read.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from freehold.contrib.django.backend import FreeholdBackend, backend_of
    from freehold.contrib.django.extension import DatabaseConnections
    from freehold.contrib.django.freehold_task import FreeholdTask, task

__all__ = ["DatabaseConnections", "FreeholdBackend", "FreeholdTask", "backend_of", "task"]


_MODULES = {
    "DatabaseConnections": "extension",
    "FreeholdBackend": "backend",
    "FreeholdTask": "freehold_task",
    "backend_of": "backend",
    "task": "freehold_task",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
