"""Metadata of a job: a small flat JSON object, stored beside the arguments and shown to all roles.

The handler's function does not get it; `ctx.meta`, filters and listings do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from freehold.errors import BadInput, BadPayload
from freehold.model import payload
from freehold.model.names import check_key

MetaValue: TypeAlias = str | int | float | bool | None

META_BYTES_LIMIT = 4096
#: The stores compare numbers of 64 bits; SQLite would round larger ones.
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


def encode_meta(meta: object) -> str | None:
    """JSON of checked metadata; None if it is empty. Raises BadInput with the reason."""
    if meta is None:
        return None
    if not isinstance(meta, Mapping):
        raise BadPayload(
            f'meta is {type(meta).__name__}: give a flat object, such as {{"batch": 7}}'
        )
    for key, value in meta.items():
        check_key("the meta key", key)
        _check_value(key, value)
    return payload.encode("meta", dict(meta), META_BYTES_LIMIT).decode() if meta else None


def decode_meta(text: str | None) -> dict[str, MetaValue]:
    """The metadata of a stored job. Text that Freehold did not write counts as none."""
    return {} if text is None else payload.stored_object(text) or {}


def meta_of(pairs: Iterable[str]) -> dict[str, MetaValue]:
    """Metadata from texts ``key=value``, as a command line or a URL has them. A value is JSON if it
    parses as JSON, else text."""
    meta: dict[str, MetaValue] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise BadInput(f"meta {pair!r} is not key=value")
        if key in meta:
            raise BadInput(f"the meta key {key!r} was given twice")
        try:
            meta[key] = payload.parse("meta", text)
        except BadPayload:
            meta[key] = text
    return meta


def _check_value(key: str, value: object) -> None:
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        raise BadPayload(
            f"meta[{key!r}] is nested: metadata is flat; store one value under each key, and "
            "other data in the arguments"
        )
    if value is not None and not isinstance(value, str | int | float):
        raise BadPayload(
            f"meta[{key!r}] is {type(value).__name__}: give text, a number, True, False or None"
        )
    if isinstance(value, int) and not _SMALLEST <= value <= _LARGEST:
        raise BadPayload(f"meta[{key!r}] is a number of more than 64 bits: store it as text")
