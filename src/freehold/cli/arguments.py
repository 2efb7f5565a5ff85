"""A task's arguments on the command line: --args JSON, or key=value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from freehold.errors import BadPayload
from freehold.model import payload

#: How some languages print numbers that JSON does not have.
_NOT_JSON_NUMBERS = frozenset({"nan", "infinity", "-infinity", "inf", "-inf"})
_JSON_BEGINNINGS = ("{", "[", '"')


def arguments(task: str, json_text: str | None, pairs: Sequence[str]) -> bytes:
    """The JSON object of a call, checked against the limits of payloads."""
    call = f"the call of task {task}"
    if json_text is None:
        values = dict(_pair(pair) for pair in pairs)
        if len(values) < len(pairs):
            raise click.UsageError("An argument was given twice.")
        return payload.encode(call, values)
    if pairs:
        raise click.UsageError("Give the arguments by --args or as key=value, not by both.")
    given = payload.parse(f"--args for task {task}", json_text)
    if not isinstance(given, dict):
        raise BadPayload(
            f"--args for task {task} is not a JSON object: give the arguments by name, as "
            '\'{"key": "value"}\''
        )
    return payload.encode(call, given)


def _pair(pair: str) -> tuple[str, Any]:
    key, equals, text = pair.partition("=")
    if not equals or not key:
        raise click.UsageError(f"{pair!r} is not key=value.")
    return key, _value(key, text)


def _value(key: str, text: str) -> Any:
    """JSON if it parses as JSON, else the text itself."""
    if text.startswith(_JSON_BEGINNINGS):
        return payload.parse(key, text)
    if text.lower() in _NOT_JSON_NUMBERS:
        raise BadPayload(
            f"{key}={text}: JSON has no such number; for the text write {key}='\"{text}\"'"
        )
    try:
        return payload.parse(key, text)
    except BadPayload:
        return text
