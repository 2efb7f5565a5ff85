"""JSON that a store accepts decodes to the same value; other values are refused with a reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.errors import BadPayload
from freehold.model.payload import PAYLOAD_BYTES_LIMIT, PAYLOAD_DEPTH_LIMIT, encode, parse

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | texts
    | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4)
)


def nested(depth: int, wrap: Callable[[Any], Any] = lambda inner: [inner]) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    return value


@given(value=values)
def test_any_json_survives_a_round_trip(value: Any) -> None:
    data = encode("args", value)
    assert parse("args", data) == value
    assert parse("args", data.decode()) == value


@given(prefix=texts, suffix=texts)
def test_a_nul_is_refused_at_any_position(prefix: str, suffix: str) -> None:
    text = f"{prefix}\x00{suffix}"
    for value in (text, [text], {text: 1}, {"k": {"k": text}}):
        with pytest.raises(BadPayload, match=r"args holds a NUL character.*remove it"):
            encode("args", value)


@given(backslashes=st.integers(1, 9), prefix=texts)
def test_text_that_only_looks_like_a_nul_is_kept(backslashes: int, prefix: str) -> None:
    value = prefix + "\\" * backslashes + "u0000"
    assert parse("args", encode("args", value)) == value


@pytest.mark.parametrize("text", [r'"\u0000"', r'"a\\\u0000"', r'{"\u0000":1}'])
def test_an_escaped_nul_from_outside_is_refused(text: str) -> None:
    with pytest.raises(BadPayload, match="NUL"):
        parse("args", text)


@dataclass
class Point:
    x: float


class Spot(msgspec.Struct):
    x: float


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: x,
        lambda x: [1.0, x],
        lambda x: (x,),
        lambda x: {x},
        lambda x: {"a": {"b": x}},
        lambda x: [Point(x)],
        lambda x: {"a": Spot(x)},
    ],
)
def test_nan_and_infinities_do_not_silently_become_null(
    number: float, wrap: Callable[[float], Any]
) -> None:
    with pytest.raises(BadPayload, match=f"args holds {number}, which JSON has no number for"):
        encode("args", wrap(number))


def test_null_itself_is_fine() -> None:
    assert encode("args", {"a": None, "null": [1.5]}) == b'{"a":null,"null":[1.5]}'


@pytest.mark.parametrize("value", ["\ud800", ["a\udfff"], {"\ud83d": 1}], ids=ascii)
def test_lone_surrogates_are_refused(value: Any) -> None:
    with pytest.raises(BadPayload, match="args holds a lone surrogate"):
        encode("args", value)


@pytest.mark.parametrize("text", ['"\ud800"', r'"\ud800"', r'"\udc00 and more"'], ids=ascii)
def test_lone_surrogates_from_outside_are_refused(text: str) -> None:
    with pytest.raises(BadPayload, match="args is not JSON"):
        parse("args", text)


@pytest.mark.parametrize("value", [object(), {(1, 2): 3}, [print], 1j])
def test_a_value_that_is_not_json_is_refused_with_a_remedy(value: Any) -> None:
    with pytest.raises(BadPayload, match=r"args is not JSON: .*; pass plain values instead"):
        encode("args", value)


@pytest.mark.parametrize(
    "text", ["", "{", "NaN", "-Infinity", "1e999", "'a'", "[1,]", '"\x00"', "\ufeff1"]
)
def test_text_that_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(BadPayload, match="args is not JSON"):
        parse("args", text)


def test_a_payload_may_have_exactly_the_limit() -> None:
    fits = "x" * (PAYLOAD_BYTES_LIMIT - 2)
    assert len(encode("args", fits)) == PAYLOAD_BYTES_LIMIT
    assert parse("args", f'"{fits}"') == fits


def test_one_byte_more_is_refused_with_both_numbers() -> None:
    too_long = "x" * (PAYLOAD_BYTES_LIMIT - 1)
    message = "args has 1,048,577 bytes of JSON; the limit is 1,048,576: store large data elsewhere"
    with pytest.raises(BadPayload, match=message):
        encode("args", too_long)
    with pytest.raises(BadPayload, match=message):
        parse("args", f'"{too_long}"')


def test_the_limit_counts_bytes_not_characters() -> None:
    with pytest.raises(BadPayload, match="has 12 bytes"):
        encode("args", "äöüßé", limit_bytes=11)


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"[": inner}])
def test_nesting_is_allowed_down_to_the_limit_and_no_deeper(wrap: Callable[[Any], Any]) -> None:
    fits, too_deep = nested(PAYLOAD_DEPTH_LIMIT, wrap), nested(PAYLOAD_DEPTH_LIMIT + 1, wrap)
    text = encode("args", fits)
    assert parse("args", text) == fits
    with pytest.raises(BadPayload, match="args is nested deeper than 64 levels: flatten it"):
        encode("args", too_deep)
    with pytest.raises(BadPayload, match="args is nested deeper than 64 levels"):
        parse("args", msgspec.json.encode(too_deep))


def test_brackets_in_strings_do_not_count_as_nesting() -> None:
    value = ["[" * 200, '"' + "{" * 200, "\\" + "[" * 200]
    assert parse("args", encode("args", value)) == value


def test_no_depth_crashes_the_interpreter() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(BadPayload, match="nested deeper"):
        encode("args", endless)
    with pytest.raises(BadPayload, match="nested deeper"):
        parse("args", "[" * 500_000)


def test_a_hostile_text_of_a_megabyte_costs_no_more_than_a_normal_one() -> None:
    """A scan from quote to quote took hours: the text has half a million unterminated strings."""
    with pytest.raises(BadPayload, match="args is not JSON"):
        parse("args", '"' + '\\"' * 500_000)


@pytest.mark.parametrize("more", [b"", b"[" * 100, b'\\"{[', b"\\\\"], ids=repr)
def test_only_brackets_outside_of_texts_count_as_levels(more: bytes) -> None:
    """Whether the text has many brackets, so that it is scanned, or few."""
    text = b'"%s"' % more
    for deep, wide in ((b"[" * 63, b""), (b"[" * 63, b",[],{}" * 40)):
        fits = deep + b'{"a":%s}' % text + wide + b"]" * 63
        assert isinstance(parse("args", fits), list)
        with pytest.raises(BadPayload, match="nested deeper"):
            parse("args", b"[" + fits + b"]")
