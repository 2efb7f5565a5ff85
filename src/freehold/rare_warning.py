"""Warnings about something that can happen thousands of times a second."""

from __future__ import annotations

from math import inf

from freehold.clock import monotonic
from freehold.telemetry import fields, log

#: A key can come from the store, and may be any.
_KEYS_LIMIT = 1000


class RareWarning:
    """Logged once a minute for each key. ``seconds`` = inf: once in this process."""

    def __init__(self, text: str, seconds: float = 60.0) -> None:
        self._text = text
        self._seconds = seconds
        self._next_at: dict[str, float] = {}

    def log(self, *values: object, key: str = "", **named: object) -> None:
        """``named``: the fields of the record."""
        now, known = monotonic(), self._next_at
        if now < known.get(key, -inf) or (key not in known and len(known) == _KEYS_LIMIT):
            return
        known[key] = now + self._seconds
        log.warning(self._text, *values, extra=fields(**named) if named else None)
