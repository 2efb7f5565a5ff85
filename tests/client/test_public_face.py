"""The public names and the tree of errors are as they are drawn."""

from __future__ import annotations

import re
from types import ModuleType

import freehold
from freehold import errors


def test_the_public_names_are_sorted_and_are_all_there_is() -> None:
    public = {
        name
        for name, value in vars(freehold).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert freehold.__all__ == sorted(public)


def test_every_error_is_public() -> None:
    assert set(_classes()) <= set(freehold.__all__)


def test_the_tree_of_errors_is_as_drawn() -> None:
    assert _drawn() == _classes()


def _classes() -> dict[str, str | None]:
    """Each error with its parent."""
    found: dict[str, str | None] = {}
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, Exception):
            parent = value.__bases__[0]
            found[name] = parent.__name__ if parent is not Exception else None
    return found


def _drawn() -> dict[str, str | None]:
    """The tree in the docstring: each level is four columns deep."""
    found: dict[str, str | None] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"(?P<indent>[│├└─ ]*)(?P<name>[A-Z]\w+)(?:\s{2,}|$)", line)
        if match is None:
            continue
        depth = len(match["indent"]) // 4
        path[depth:] = [match["name"]]
        found[match["name"]] = path[depth - 1] if depth else None
    return found
