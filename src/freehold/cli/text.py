"""Text for a terminal, without the libraries that draw there: a worker needs no more than this."""

from __future__ import annotations

_ELLIPSIS = "…"


def clean(text: str) -> str:
    """Replaces control characters other than newlines: stored text must not drive the terminal."""
    return "".join(c if c == "\n" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def one_line(text: str) -> str:
    return clean(" ".join(text.split()))


def shorten_middle(name: str, width: int) -> str:
    """Cuts a name in the middle, because task names differ at their ends and beginnings."""
    if len(name) <= width:
        return name
    head = max(0, width - 1) * 2 // 5
    tail = max(0, width - 1 - head)
    return name[:head] + _ELLIPSIS + (name[-tail:] if tail else "")


def shorten_end(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 1)] + _ELLIPSIS
