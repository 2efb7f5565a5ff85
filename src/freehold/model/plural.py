"""Numbers with their nouns, for texts that users read."""

from __future__ import annotations


def count(number: int, noun: str, plural: str | None = None) -> str:
    """``count(1, "job")`` is "1 job", ``count(2000, "job")`` is "2,000 jobs"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def bounded(number: int, bound: int) -> str:
    """A count that ended at a bound is "1,000+"."""
    return f"{bound:,}+" if number >= bound else f"{number:,}"
