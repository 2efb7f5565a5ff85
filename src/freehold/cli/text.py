"""Words for a terminal, without the tools that draw there: a worker needs no more than these."""

from __future__ import annotations


def clean(text: str) -> str:
    """Stored text must not drive the terminal: control characters other than newlines go."""
    return "".join(c if c == "\n" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def one_line(text: str) -> str:
    return clean(" ".join(text.split()))
