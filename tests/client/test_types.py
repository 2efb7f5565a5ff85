"""Typed arguments: the handler gets the values that the producer passed, on every store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Literal, Optional, TypedDict
from uuid import UUID

import msgspec
import pytest

from freehold import BadArguments, BadPayload, BadSettings, Freehold
from tests.client.helpers import call_of, jobs_of


class Colour(Enum):
    RED = "red"


class Size(IntEnum):
    LARGE = 3


@dataclass
class Point:
    x: float
    label: str | None = None


class Order(msgspec.Struct):
    id: UUID
    lines: list[Point]


class Address(TypedDict):
    city: str


def dates(at: datetime, day: date, clock: time, span: timedelta) -> None: ...
def identity(id: UUID, colour: Colour, size: Size, price: Decimal, data: bytes) -> None: ...
def records(point: Point, order: Order, address: Address) -> None: ...
def choices(letter: Literal["a", "b"], maybe: Optional[int], either: int | str) -> None: ...  # noqa: UP045
def collections(pair: tuple[int, str], names: set[str], by_id: dict[int, Point]) -> None: ...
def rest(first: int, *others: Point, **named: Colour) -> None: ...
def positions(only: int, /, both: str = "x", *, name: bool = False) -> None: ...
def untyped(anything, more=None) -> None: ...  # type: ignore[no-untyped-def]


UUID_ONE = UUID("12345678-1234-5678-1234-567812345678")
CALLS: list[tuple[Callable[..., None], tuple[Any, ...], dict[str, Any]]] = [
    (
        dates,
        (),
        {
            "at": datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
            "day": date(2030, 1, 2),
            "clock": time(23, 59, 59, 999999),
            "span": timedelta(days=1, microseconds=1),
        },
    ),
    (
        identity,
        (),
        {
            "id": UUID_ONE,
            "colour": Colour.RED,
            "size": Size.LARGE,
            "price": Decimal("0.10"),
            "data": b"\0\xff",
        },
    ),
    (
        records,
        (),
        {
            "point": Point(1.5, "a"),
            "order": Order(UUID_ONE, [Point(0.0), Point(-1e300)]),
            "address": Address(city="Ulm"),
        },
    ),
    (choices, (), {"letter": "b", "maybe": None, "either": "x"}),
    (choices, (), {"letter": "a", "maybe": 7, "either": 2**63}),
    (collections, (), {"pair": (1, "x"), "names": {"a", "b"}, "by_id": {7: Point(1.0)}}),
    (rest, (1, Point(2.0), Point(3.0)), {"red": Colour.RED}),
    (rest, (1,), {}),
    (positions, (5,), {"both": "y", "name": True}),
    (positions, (5,), {}),
    (untyped, (), {"anything": {"a": [1, 2.5, None, True, "✓"]}, "more": []}),
]


@pytest.mark.parametrize(("function", "args", "kwargs"), CALLS)
def test_a_call_arrives_as_it_was_made(
    app: Freehold, function: Callable[..., None], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    task = app.task(function)
    job = task.enqueue(*args, **kwargs).read()
    assert call_of(task, job) == (args, kwargs)


def test_positional_arguments_arrive_by_name(app: Freehold) -> None:
    task = app.task(positions)
    assert call_of(task, task.enqueue(1, "y").read()) == ((1,), {"both": "y"})


def test_a_default_is_applied_when_the_handler_runs(app: Freehold) -> None:
    """So a deployment can change it for stored jobs."""
    assert app.task(positions).enqueue(1).read().args == '{"only":1}'


def test_the_context_is_not_stored_as_an_argument(app: Freehold) -> None:
    @app.task(name="with-context")
    def handler(page: int, *, ctx: Any) -> None: ...

    assert handler.enqueue(3).read().args == '{"page":3}'  # type: ignore[call-arg]


BAD_CALLS: list[tuple[Callable[..., None], tuple[Any, ...], dict[str, Any], str]] = [
    (positions, (), {}, "missing a required argument: 'only'"),
    (positions, (1,), {"unknown": 1}, "unexpected keyword argument 'unknown'"),
    (positions, ("one",), {}, "Expected `int`, got `str` - at `only`"),
    (positions, (1, "x", 3), {}, "too many positional arguments"),
    (positions, (), {"only": 1}, "positional"),
    (choices, ("c", None, 1), {}, "Invalid enum value 'c' - at `letter`"),
    (untyped, ((1, 2),), {}, "anything=(1, 2) would arrive as [1, 2]"),
    (untyped, ({1: 2},), {}, "anything={1: 2} would arrive as {'1': 2}"),
    (untyped, (UUID_ONE,), {}, "annotate the parameter with its type"),
]


@pytest.mark.parametrize(("function", "args", "kwargs", "message"), BAD_CALLS)
def test_a_call_that_does_not_fit_is_refused(
    app: Freehold,
    function: Callable[..., None],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    message: str,
) -> None:
    task = app.task(function)
    with pytest.raises(BadArguments) as caught:
        task.enqueue(*args, **kwargs)
    assert message in str(caught.value)
    assert task.name in str(caught.value)
    assert jobs_of(app) == ()


def test_a_type_that_json_cannot_represent_is_refused(sqlite_app: Freehold) -> None:
    def strange(number: complex) -> None: ...

    with pytest.raises((BadSettings, BadArguments, BadPayload), match="complex"):
        sqlite_app.task(name="strange")(strange).prepare(1j)
