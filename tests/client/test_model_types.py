"""pydantic models, paths and time zones as arguments and results, on every store."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any, Generic, Literal, TypeVar
from zoneinfo import ZoneInfo

import msgspec
import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, SecretStr, computed_field

from freehold import BadArguments, BadPayload, BadSettings, Freehold
from freehold.model import payload
from freehold.value_types import typed_decoder
from tests.client.helpers import call_of, jobs_of

T = TypeVar("T")


class Line(BaseModel):
    sku: str
    count: int = Field(gt=0)


class Order(BaseModel):
    """Strict: in Python it accepts no text for a date, in JSON it does."""

    model_config = ConfigDict(strict=True)

    at: datetime
    price: Decimal
    lines: list[Line]
    tags: set[str] = set()


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=str.upper, extra="forbid")

    size: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.size


class Card(BaseModel):
    kind: Literal["card"] = "card"
    number: str


class Account(BaseModel):
    kind: Literal["account"] = "account"
    iban: str


class Short(BaseModel):
    a: int


class Long(BaseModel):
    a: int
    b: int = 0


class Page(BaseModel, Generic[T]):
    items: list[T]


Numbers = RootModel[list[int]]


@dataclass
class Parcel:
    order: Order
    papers: list[Path]


ORDER = Order(
    at=datetime(2030, 1, 2, tzinfo=UTC),
    price=Decimal("0.10"),
    lines=[Line(sku="a", count=1)],
    tags={"x"},
)


def model(order: Order) -> None: ...
def inside(many: list[Order], by_name: dict[str, Order], maybe: Order | None) -> None: ...
def either(paid: Card | Account | None, all: list[Card | Account], mixed: Card | int) -> None: ...
def similar(one: Short | Long) -> None: ...
def special(camel: Camel, numbers: Numbers, page: Page[Line]) -> None: ...
def parcel(parcel: Parcel, *orders: Order, **named: Card | str) -> None: ...
def files(path: Path, pure: PurePosixPath, zone: ZoneInfo, by_path: dict[Path, int]) -> None: ...
def defaults(path: Path = Path(), zone: ZoneInfo | None = None) -> None: ...


BERLIN = ZoneInfo("Europe/Berlin")
CALLS: list[tuple[Callable[..., None], tuple[Any, ...], dict[str, Any]]] = [
    (model, (), {"order": ORDER}),
    (inside, (), {"many": [ORDER, ORDER], "by_name": {"one": ORDER}, "maybe": None}),
    (inside, (), {"many": [], "by_name": {}, "maybe": ORDER}),
    (either, (), {"paid": None, "all": [Account(iban="1"), Card(number="2")], "mixed": 7}),
    (either, (), {"paid": Account(iban="3"), "all": [], "mixed": Card(number="4")}),
    (similar, (), {"one": Short(a=1)}),
    (similar, (), {"one": Long(a=1, b=2)}),
    (
        special,
        (),
        {
            "camel": Camel(SIZE=2),  # type: ignore[call-arg]
            "numbers": Numbers([1, 2]),
            "page": Page[Line](items=ORDER.lines),
        },
    ),
    (parcel, (Parcel(ORDER, [Path("/a")]), ORDER), {"card": Card(number="5"), "text": "x"}),
    (
        files,
        (),
        {
            "path": Path("a/ä.txt"),
            "pure": PurePosixPath("/b"),
            "zone": BERLIN,
            "by_path": {Path("c"): 1},
        },
    ),
    (defaults, (), {}),
    (defaults, (), {"path": Path("d"), "zone": BERLIN}),
]


@pytest.mark.requirement("N7")
@pytest.mark.parametrize(("function", "args", "kwargs"), CALLS)
def test_a_call_with_models_arrives_as_it_was_made(
    app: Freehold, function: Callable[..., None], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    task = app.task(function)
    assert call_of(task, task.enqueue(*args, **kwargs).read()) == (args, kwargs)


class Credentials(BaseModel):
    password: SecretStr


def kept(order: Order, lines: list[Line], one: Card | Account) -> None: ...
def untyped(anything: Any) -> None: ...
def masked(credentials: Credentials) -> None: ...


GOOD = {"at": "2030-01-02T00:00:00Z", "price": "1", "lines": []}
BAD_JSON: list[tuple[dict[str, Any], str]] = [
    (
        {"order": {**GOOD, "lines": [{"sku": "a", "count": 1}, {"sku": "a", "count": 0}]}},
        "Input should be greater than 0 - at `order.lines[1].count`",
    ),
    ({"order": {**GOOD, "at": 5, "price": []}}, "(and 1 more error) - at `order.at`"),
    ({"lines": [{"sku": "a"}]}, "Field required - at `lines[0].count`"),
    ({"one": {"number": 1}}, "Expected one of `Card`, `Account`, and the value fits none"),
]


@pytest.mark.parametrize(("changes", "message"), BAD_JSON)
def test_json_that_a_model_refuses_is_refused_with_the_path_of_the_field(
    sqlite_app: Freehold, changes: dict[str, Any], message: str
) -> None:
    task = sqlite_app.task(kept)
    call = {"order": GOOD, "lines": [], "one": {"number": "1"}, **changes}
    with pytest.raises(BadArguments) as caught:
        task.prepare_json(msgspec.json.encode(call))
    assert message in str(caught.value)
    assert "input_value" not in str(caught.value)


@pytest.mark.parametrize(
    ("function", "value", "message"),
    [
        (untyped, ORDER, "annotate the parameter with its type"),
        (untyped, Path("a"), "annotate the parameter with its type"),
        (masked, Credentials(password=SecretStr("x")), "would arrive as"),
        (model, Order.model_construct(at="never", price=1, lines=[]), "at `order.at`"),
        (model, Path("a"), "Input should be an object - at `order`"),
    ],
)
def test_a_value_that_would_arrive_as_another_is_refused(
    app: Freehold, function: Callable[..., None], value: Any, message: str
) -> None:
    with pytest.raises(BadArguments, match=message):
        app.task(function).enqueue(value)
    assert jobs_of(app) == ()


@pytest.mark.parametrize("name", ["Mars/Base", "../etc/passwd", "Europe/", "a\\u0000b", "", 7])
def test_an_unknown_time_zone_is_refused(sqlite_app: Freehold, name: object) -> None:
    task = sqlite_app.task(defaults)
    with pytest.raises((BadArguments, BadPayload)):
        task.prepare_json(f'{{"zone": {msgspec.json.encode(name).decode()}}}'.encode())


def test_a_time_zone_without_a_name_is_refused(sqlite_app: Freehold) -> None:
    header = struct.pack(">4s16x6l", b"TZif", 0, 0, 0, 0, 1, 4)
    nameless = ZoneInfo.from_file(io.BytesIO(header + struct.pack(">lbb4s", 0, 0, 0, b"UTC")))
    with pytest.raises(BadPayload, match="ZoneInfo"):
        sqlite_app.task(defaults).prepare(zone=nameless)


def path_or_text(value: Path | str) -> None: ...
def path_or_zone(value: list[Path | ZoneInfo]) -> None: ...


@pytest.mark.parametrize("function", [path_or_text, path_or_zone])
def test_a_union_whose_values_look_the_same_is_refused_when_it_is_defined(
    sqlite_app: Freehold, function: Callable[..., None]
) -> None:
    with pytest.raises(BadSettings, match="look the same in JSON"):
        sqlite_app.task(function)


def test_not_a_number_inside_of_a_model_does_not_become_null() -> None:
    class Reading(BaseModel):
        value: float

    with pytest.raises(BadPayload, match="nan"):
        payload.encode("the result", {"readings": [Reading(value=float("nan"))]})


@pytest.mark.requirement("N7")
def test_a_model_is_a_result_like_any_other(app: Freehold) -> None:
    @app.task(name="make-order")
    async def make_order() -> dict[str, Order | Path]:
        return {"order": ORDER, "path": Path("a")}

    job = make_order.enqueue()
    assert app.run_worker(until_idle=True) == 0
    report = job.read().report
    assert report is not None
    assert typed_decoder(Order).decode(msgspec.json.encode(report.result["order"])) == ORDER
    assert report.result["path"] == "a"


def test_pydantic_is_not_imported_by_the_core() -> None:
    program = "import sys, freehold; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=120).returncode == 0
