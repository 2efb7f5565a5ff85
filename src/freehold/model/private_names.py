"""Arguments and results as text for people: values under names such as `password` are masked.

A `Secret` is hidden before, whatever its name: see `secrets`.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from freehold.model.payload import stored_object

MASKED = "…masked…"
#: In place of values that are nested more deeply.
TOO_DEEP = "…deeper values are not shown…"
#: Characters that are shown.
SHOWN_LIMIT = 64 * 1024
_DEPTH_LIMIT = 50
#: Compared without regard to case, hyphens and underscores: `X-Api-Key` is `xapikey`.
_PARTS = (
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "token",
    "authorization",
    "apikey",
    "accesskey",
    "privatekey",
    "cookie",
    "credential",
)
#: Only as a whole word, for they are parts of others (compass, spin).
_WORDS = {"pass", "pin"}
_WORD_END = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")


def is_private_name(name: str) -> bool:
    words = [word.lower() for word in _WORD_END.split(name)]
    joined = "".join(words)
    return any(part in joined for part in _PARTS) or not _WORDS.isdisjoint(words)


def arguments_text(stored: str) -> str:
    """A text that is no JSON object cannot be masked."""
    values = stored_object(stored)
    return "…not readable, so not shown…" if values is None else value_text(values)


def value_text(value: Any) -> str:
    """Indented JSON. Whole numbers keep all their digits: the text is made here."""
    text = msgspec.json.format(msgspec.json.encode(masked(value)), indent=2).decode()
    if len(text) <= SHOWN_LIMIT:
        return text
    return f"{text[:SHOWN_LIMIT]}\n… the rest is not shown"


def unmasked(edited: Any, stored: Any) -> Any:
    """Edited arguments with the stored values where the mask was left as it was shown."""
    if isinstance(edited, list) and isinstance(stored, list) and len(edited) == len(stored):
        return [unmasked(*pair) for pair in zip(edited, stored, strict=True)]
    if not isinstance(edited, dict) or not isinstance(stored, dict):
        return stored if edited == TOO_DEEP else edited
    return {
        name: stored[name]
        if value == MASKED and name in stored
        else unmasked(value, stored.get(name))
        for name, value in edited.items()
    }


def masked(value: Any, depth: int = 0) -> Any:
    if not isinstance(value, dict | list):
        return value
    if depth == _DEPTH_LIMIT:
        return TOO_DEEP
    if isinstance(value, list):
        return [masked(inner, depth + 1) for inner in value]
    return {
        name: MASKED if is_private_name(str(name)) else masked(inner, depth + 1)
        for name, inner in value.items()
    }
