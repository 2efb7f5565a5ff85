"""The public names, and the tree of errors as it is drawn."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from enum import Enum
from types import ModuleType
from typing import Any

import msgspec
import pytest

import freehold
from freehold import errors
from freehold.model.operator_actions import OperatorVerb


def test_all_public_names_are_listed_and_sorted() -> None:
    public = {
        name
        for name, value in vars(freehold).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert freehold.__all__ == sorted(public)


def test_the_names_of_an_app_are_the_documented_ones() -> None:
    names = {name for name in dir(freehold.Freehold("sqlite://:memory:")) if name[0] != "_"}
    assert names == {
        "abatch",
        "aclose",
        "aenqueue_many",
        "aflow",
        "ajob",
        "aopen_batch",
        "aoperator",
        "arun_worker",
        "asend_signal",
        "batch",
        "carry",
        "close",
        "cron",
        "enqueue_many",
        "extend",
        "flow",
        "include",
        "job",
        "migrate",
        "open_batch",
        "operator",
        "override",
        "run_worker",
        "running",
        "schedule",
        "schema",
        "send_signal",
        "task",
        "tasks",
        "tenant",
        "tenants",
        "url",
        "workflow",
    }


@pytest.mark.parametrize("verb", OperatorVerb)
def test_every_verb_of_an_operator_is_a_method(verb: OperatorVerb) -> None:
    assert callable(getattr(freehold.Operator, verb))
    assert callable(getattr(freehold.AsyncOperator, verb))


def test_the_types_in_public_structs_are_public() -> None:
    structs = [
        value
        for value in vars(freehold).values()
        if isinstance(value, type) and issubclass(value, msgspec.Struct)
    ]
    assert freehold.JobDetail in structs
    named = {name for struct in structs for name in _types_in(struct)}
    assert {"TimelineEntry", "LogLine", "Stage", "PauseInfo"} <= named <= set(freehold.__all__)


def _types_in(struct: type[msgspec.Struct]) -> Iterator[str]:
    """The structs and enums among the types of its fields."""
    waiting: list[Any] = [field.type for field in msgspec.structs.fields(struct)]
    while waiting:
        kind = waiting.pop()
        waiting += typing.get_args(kind)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct | Enum):
            yield kind.__name__


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
