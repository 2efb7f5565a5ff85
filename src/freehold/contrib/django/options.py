"""The settings of a backend: `TASKS[alias]["OPTIONS"]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import DEFAULT_DB_ALIAS

from freehold.model.retry import DEFAULT_RETRY, Retry

DEFAULT_SCHEMA = "freehold"


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """``database`` is an alias of DATABASES, ``url`` a store of its own beside them."""

    database: str = DEFAULT_DB_ALIAS
    url: str | None = None
    schema: str = DEFAULT_SCHEMA
    retry: Retry = DEFAULT_RETRY
    timeout: float | None = None
    #: Names of the modules that define tasks, in each installed app.
    autodiscover: tuple[str, ...] = ("tasks",)


_TYPES: dict[str, tuple[type, ...]] = {
    "DATABASE": (str,),
    "URL": (str,),
    "SCHEMA": (str,),
    "RETRY": (Retry,),
    "TIMEOUT": (int, float),
    "AUTODISCOVER": (list, tuple),
}


def read_options(given: Mapping[str, Any]) -> BackendOptions:
    """Unknown and wrong values are left out; `problems` has them, for the system checks."""
    good: dict[str, Any] = {
        name.lower(): value
        for name, value in given.items()
        if name in _TYPES and isinstance(value, _TYPES[name])
    }
    if "autodiscover" in good:
        good["autodiscover"] = tuple(good["autodiscover"])
    return BackendOptions(**good)


def problems(given: Mapping[str, Any]) -> list[str]:
    """What is wrong with the options, each with what to do."""
    found = []
    for name, value in given.items():
        if name not in _TYPES:
            known = ", ".join(_TYPES)
            found.append(f"OPTIONS has no {name!r}: the options of this backend are {known}")
        elif not isinstance(value, _TYPES[name]):
            wanted = " or ".join(each.__name__ for each in _TYPES[name])
            found.append(f"OPTIONS[{name!r}] is {value!r}: give a value of the type {wanted}")
        elif other := _wanted(name, value):
            found.append(f"OPTIONS[{name!r}] is {value!r}: give {other}")
    if "DATABASE" in given and "URL" in given:
        found.append("OPTIONS has both DATABASE and URL: give one of them")
    return found


def _wanted(name: str, value: Any) -> str | None:
    """For a value of the right type that cannot be used."""
    if name == "TIMEOUT" and not value > 0:
        return "a number of seconds above 0"
    if name == "AUTODISCOVER" and not all(isinstance(each, str) for each in value):
        return "names of modules"
    return None
