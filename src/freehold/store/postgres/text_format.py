"""Values in PostgreSQL's text format, in which a pipeline sends them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import psycopg


def encode_all(values: list[Any]) -> list[bytes | None]:
    # Most values are texts and integers: a call for each of them would double the time.
    return [
        value.encode()
        if type(value) is str and "\0" not in value
        else b"%d" % value
        if type(value) is int
        else _encode(value)
        for value in values
    ]


def _encode(value: Any) -> bytes | None:
    """In PostgreSQL's text format; the statement names the type."""
    if value is None:
        return None
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, int | float):
        return str(value).encode()
    if isinstance(value, datetime):
        return value.isoformat().encode()
    if isinstance(value, list):
        value = "{" + ",".join(map(_element, value)) + "}"
    if not isinstance(value, str):
        raise TypeError(f"no value for PostgreSQL: {value!r}")
    if "\0" in value:  # libpq would cut the text there
        raise psycopg.DataError("PostgreSQL's texts cannot contain the character \\0")
    return value.encode()


def _element(value: str | int) -> str:
    if isinstance(value, int):
        return str(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
