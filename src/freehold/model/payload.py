"""Which JSON may be stored: limits on size and depth, and nothing that a database refuses."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from freehold.errors import BadPayload

PAYLOAD_BYTES_LIMIT = 1024 * 1024
PAYLOAD_DEPTH_LIMIT = 64

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_AS_BRACES = bytes.maketrans(b"[]", b"{}")
_NO_BRACKETS = bytes(each for each in range(256) if each not in b"[]{}")
_FLAT = frozenset({str, int, bool, type(None)})


def is_model(kind: Any) -> bool:
    """Whether a class is a model of pydantic 2, which is not imported."""
    return hasattr(kind, "__pydantic_validator__") and hasattr(kind, "model_validate_json")


def _plain_value(value: Any) -> Any:
    """A value of a type that msgspec does not know, as values that it knows."""
    if is_model(type(value)):
        # Without warnings, which quote values: arguments are checked by decoding them again.
        try:
            return value.model_dump(mode="json", by_alias=True, round_trip=True, warnings=False)
        except ValueError as error:  # its text may quote a value, which may be secret
            name = type(value).__name__
            raise TypeError(f"a {name} cannot be dumped: {type(error).__name__}") from error
    if hasattr(value, "__fspath__"):  # of a path
        return value.__fspath__()
    if isinstance(value, ZoneInfo) and value.key is not None:
        return value.key
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


#: The JSON of a value, without the checks of `encode`.
encode_value = msgspec.json.Encoder(enc_hook=_plain_value).encode


def encode(what: str, value: Any, limit_bytes: int = PAYLOAD_BYTES_LIMIT) -> bytes:
    """JSON of a value. Raises BadPayload with the reason."""
    try:
        data = encode_value(value)
    except RecursionError:
        raise BadPayload(_too_deep(what)) from None
    except UnicodeEncodeError:
        raise BadPayload(
            f"{what} holds a lone surrogate, which is not Unicode text: decode it properly first"
        ) from None
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        raise BadPayload(f"{what} is not JSON: {error}; pass plain values instead") from None
    # The search for one byte is the fastest, and most texts have no escapes.
    if len(data) > limit_bytes or b"\\" in data:
        _check_size_and_nul(what, data, limit_bytes)
    if not _is_flat(value):  # else it has one level, and no number that JSON lacks
        _check_depth(what, data)
        if b"null" in data:
            _refuse_not_a_number(what, value)
    return data


def check_bytes(what: str, data: bytes, limit_bytes: int = PAYLOAD_BYTES_LIMIT) -> None:
    """Check the limits of a text that is known to be JSON."""
    _check_size_and_nul(what, data, limit_bytes)
    _check_depth(what, data)


def _is_flat(value: Any) -> bool:
    """A quick result for most arguments, which saves three scans of their text."""
    if type(value) is not dict:
        return False
    for each in value.values():
        kind = type(each)
        if kind not in _FLAT and not (kind is float and math.isfinite(each)):
            return False
    return True


def _check_size_and_nul(what: str, data: bytes, limit_bytes: int) -> None:
    if len(data) > limit_bytes:
        raise BadPayload(_too_large(what, data, limit_bytes))
    if b"\\u0000" in data and _NUL.search(data):
        raise BadPayload(f"{what} holds a NUL character, which no store keeps: remove it")


def _check_depth(what: str, data: bytes) -> None:
    # A level takes at least two bytes, so short payloads need no scan.
    if len(data) > 2 * PAYLOAD_DEPTH_LIMIT and _is_too_deep(data):
        raise BadPayload(_too_deep(what))


def parse(what: str, text: str | bytes, limit_bytes: int = PAYLOAD_BYTES_LIMIT) -> Any:
    """The value of a JSON text from outside, within the same limits."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(data) > limit_bytes:
        raise BadPayload(_too_large(what, data, limit_bytes))
    try:
        value = msgspec.json.decode(data)
    except RecursionError:
        raise BadPayload(_too_deep(what)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadPayload(f"{what} is not JSON: {error}") from None
    # After decoding: the scan of a text that is not JSON could take hours.
    check_bytes(what, data, limit_bytes)
    return value


def stored_object(text: str) -> dict[str, Any] | None:
    """The value of a stored text; None if it is no object within the limits. Other programs write
    to the database too, and one such job must not hide all others from a reader."""
    try:
        value = parse("a stored value", text)
    except BadPayload:
        return None
    return value if isinstance(value, dict) else None


def _too_large(what: str, data: bytes, limit_bytes: int) -> str:
    return (
        f"{what} has {len(data):,} bytes of JSON; the limit is {limit_bytes:,}: "
        "store large data elsewhere and pass a reference to it"
    )


def _too_deep(what: str) -> str:
    return f"{what} is nested deeper than {PAYLOAD_DEPTH_LIMIT} levels: flatten it"


def _is_too_deep(data: bytes) -> bool:
    """For valid JSON. Most payloads have too few brackets, even with those in strings."""
    if data.count(b"[") + data.count(b"{") <= PAYLOAD_DEPTH_LIMIT:
        return False
    brackets = _STRING.sub(b"", data).translate(_AS_BRACES, _NO_BRACKETS)
    for _ in range(PAYLOAD_DEPTH_LIMIT):  # removes the innermost pairs
        if not brackets:
            return False
        brackets = brackets.replace(b"{}", b"")
    return bool(brackets)


def _refuse_not_a_number(what: str, value: Any) -> None:
    """NaN and the infinities would silently become null."""
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, float):
            if not math.isfinite(item):
                raise BadPayload(f"{what} holds {item}, which JSON has no number for: use None")
        else:
            waiting.extend(_parts(item))


def _parts(item: Any) -> Iterable[Any]:
    if isinstance(item, dict):
        return item.values()
    if isinstance(item, list | tuple | set | frozenset):
        return item
    if isinstance(item, msgspec.Struct):
        return (getattr(item, name) for name in item.__struct_fields__)
    if hasattr(item, "__dataclass_fields__"):
        return (getattr(item, name) for name in item.__dataclass_fields__)
    if is_model(type(item)):
        return (*vars(item).values(), *(item.model_extra or {}).values())
    return ()
