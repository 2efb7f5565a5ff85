"""Metadata of a job: flat, small, and readable by every store."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.errors import BadInput, BadName, BadPayload
from freehold.model.meta import META_BYTES_LIMIT, decode_meta, encode_meta

KEYS = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=20
).filter(str.isprintable)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
)


@pytest.mark.requirement("N6")
@given(st.dictionaries(KEYS, VALUES, max_size=10))
def test_flat_values_come_back_as_they_were(meta: dict[str, Any]) -> None:
    back = decode_meta(encode_meta(meta))
    assert back == meta
    assert [type(value) for value in back.values()] == [type(value) for value in meta.values()]


BAD: dict[str, tuple[Any, str]] = {
    "a list": ([1], "meta is list: give a flat object"),
    "text": ("{}", "meta is str: give a flat object"),
    "an object in it": ({"a": {}}, r"meta\['a'\] is nested: metadata is flat"),
    "a list in it": ({"a": []}, r"meta\['a'\] is nested"),
    "a tuple in it": ({"a": ()}, r"meta\['a'\] is nested"),
    "bytes": ({"a": b"x"}, r"meta\['a'\] is bytes: give text, a number"),
    "a time": ({"a": datetime(2030, 1, 1, tzinfo=UTC)}, r"meta\['a'\] is datetime"),
    "more than 64 bits": ({"a": 2**63}, "more than 64 bits: store it as text"),
    "fewer than -64 bits": ({"a": -(2**63) - 1}, "more than 64 bits: store it as text"),
    "no number": ({"a": math.nan}, "JSON has no number for"),
    "infinity": ({"a": math.inf}, "JSON has no number for"),
    "a NUL": ({"a": "\0"}, "NUL character"),
    "half a character": ({"a": "\ud800"}, "lone surrogate"),
    "too much": ({"a": "x" * META_BYTES_LIMIT}, "bytes of JSON; the limit is 4,096"),
}


@pytest.mark.requirement("N6")
@pytest.mark.parametrize(("meta", "why"), BAD.values(), ids=BAD.keys())
def test_bad_metadata_is_refused_with_the_reason(meta: Any, why: str) -> None:
    with pytest.raises(BadPayload, match=why):
        encode_meta(meta)


@pytest.mark.requirement("N6")
@pytest.mark.parametrize("key", ["", 7, None, "a\n", "\u202e", "x" * 201])
def test_a_key_that_no_command_can_name_is_refused(key: Any) -> None:
    with pytest.raises(BadName, match=r"the meta key .* cannot be used"):
        encode_meta({key: 1})


@pytest.mark.requirement("N6")
def test_the_largest_metadata_fits_exactly() -> None:
    text = "x" * (META_BYTES_LIMIT - len('{"a":""}'))
    encoded = encode_meta({"a": text})
    assert encoded is not None
    assert len(encoded) == META_BYTES_LIMIT
    with pytest.raises(BadInput):
        encode_meta({"a": text + "x"})


@pytest.mark.parametrize("text", [None, "[]", "7", "not json", "null"])
def test_a_stored_text_that_is_no_object_counts_as_none(text: str | None) -> None:
    assert decode_meta(text) == {}


def test_no_metadata_is_not_stored() -> None:
    assert encode_meta(None) is None
    assert encode_meta({}) is None
