"""A task's arguments as typed by a person: --args JSON, or key=value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from freehold.errors import BadPayload
from freehold.model import payload

#: What some languages print for numbers that JSON does not have.
_NO_NUMBERS = frozenset({"nan", "infinity", "-infinity", "inf", "-inf"})
_PLAINLY_JSON = ("{", "[", '"')


def arguments(task: str, json_text: str | None, pairs: Sequence[str]) -> bytes:
    """The JSON object of a call, checked by the limits."""
    what = f"the call of task {task}"
    if json_text is None:
        values = dict(_pair(pair) for pair in pairs)
        if len(values) < len(pairs):
            raise click.UsageError("An argument was given twice.")
        return payload.encode(what, values)
    if pairs:
        raise click.UsageError("Give the arguments by --args or as key=value, not by both.")
    given = payload.parse(f"--args for task {task}", json_text)
    if not isinstance(given, dict):
        raise BadPayload(
            f"--args for task {task} is no JSON object: give the arguments by name, as "
            '\'{"key": "value"}\''
        )
    return payload.encode(what, given)


def _pair(pair: str) -> tuple[str, Any]:
    key, equals, text = pair.partition("=")
    if not equals or not key:
        raise click.UsageError(f"{pair!r} is not key=value.")
    return key, _value(key, text)


def _value(key: str, text: str) -> Any:
    """JSON where it reads as JSON, else the text itself."""
    if text.startswith(_PLAINLY_JSON):
        return payload.parse(key, text)
    if text.lower() in _NO_NUMBERS:
        raise BadPayload(
            f"{key}={text}: JSON has no such number; for the text write {key}='\"{text}\"'"
        )
    try:
        return payload.parse(key, text)
    except BadPayload:
        return text
