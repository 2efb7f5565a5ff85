"""Failed attempts: the traceback that Python would write, and nothing left behind."""

from __future__ import annotations

import gc
import importlib.util
import json
import traceback
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from freehold import Retry
from freehold.worker.execution.trace_text import trace_text
from tests.worker.local_worker import LocalWorker


class OwnError(Exception):
    """Of this module, and false."""

    def __bool__(self) -> bool:
        return False


class Unprintable(Exception):
    def __str__(self) -> str:
        raise SystemExit


def plain() -> None:
    raise ValueError("no such value")


def without_message() -> None:
    raise KeyError


def two_lines() -> None:
    raise OwnError("first\nsecond")


def with_cause() -> None:
    try:
        two_lines()
    except OwnError as error:
        raise ConnectionError("refused") from error


def with_context() -> None:
    try:
        with_cause()
    except ConnectionError:
        plain()


def without_context() -> None:
    try:
        with_context()
    except ValueError:
        raise TimeoutError(1, 2) from None


def in_a_circle() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    raise first


def deep(levels: int = 12) -> None:
    deep(levels - 1) if levels else plain()


def of_a_library() -> None:
    json.loads("{")


def with_note() -> None:
    error = ValueError("noted")
    error.add_note("look here")
    raise error


def of_a_group() -> None:
    raise ExceptionGroup("several", [ValueError("one"), OwnError("two")])


def of_a_name() -> None:
    undefined_nam = 1
    undefined_name  # type: ignore[name-defined]  # noqa: B018, F821
    assert undefined_nam


def of_source() -> None:
    compile("a b", "file.py", "exec")


def unprintable() -> None:
    try:
        plain()
    except ValueError as error:
        raise Unprintable from error


def exits() -> None:
    raise SystemExit(3)


def two_places_in_a_line() -> None:
    numbers: list[int] = []
    assert (numbers or [0])[0] or numbers[0]


RAISES: list[Callable[[], Any]] = [
    plain,
    without_message,
    two_lines,
    with_cause,
    with_context,
    without_context,
    in_a_circle,
    deep,
    of_a_library,
    with_note,
    of_a_group,
    of_a_name,
    of_source,
    unprintable,
    exits,
    two_places_in_a_line,
]


def raised(function: Callable[[], Any]) -> BaseException:
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("function", RAISES)
def test_the_text_is_that_of_python(function: Callable[[], Any]) -> None:
    for _ in range(2):
        error = raised(function)
        assert trace_text(error) == "".join(traceback.format_exception(error))


def test_an_exception_that_was_never_raised_has_a_text() -> None:
    for error in (ValueError("made"), OwnError()):
        assert trace_text(error) == "".join(traceback.format_exception(error))


def test_the_source_is_read_at_the_first_failure_only(tmp_path: Path) -> None:
    """Also right: the file may have been changed since, and the code that fails is the old one."""
    path = tmp_path / "shop.py"
    path.write_text("def send():\n    raise ValueError('no such address')\n")
    spec = importlib.util.spec_from_file_location("shop", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    first = trace_text(raised(module.send))
    path.write_text("# A new first line.\n\n\ndef send():\n    return None\n")
    assert trace_text(raised(module.send)) == first
    assert "raise ValueError('no such address')" in first


def test_what_a_failed_handler_held_is_freed_at_once(sqlite_local_worker: LocalWorker) -> None:
    """Not at the next run of the garbage collector, which may be long after."""

    class Large:
        pass

    held: list[weakref.ref[Large]] = []
    left: list[int] = []

    async def fails() -> None:
        left.append(sum(each() is not None for each in held))
        large = Large()
        held.append(weakref.ref(large))
        raise ValueError("failed")

    sqlite_local_worker.add(fails, retry=Retry(max_attempts=4, base_seconds=0.0))
    gc.disable()
    try:
        sqlite_local_worker.run()
    finally:
        gc.enable()
    assert left == [0, 0, 0, 0]
