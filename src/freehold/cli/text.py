"""Text for a terminal, without the libraries that draw there: a worker needs no more than this."""

from __future__ import annotations

_ELLIPSIS = "…"


def clean(text: str) -> str:
    """Replaces control characters other than newlines: stored text must not drive the terminal."""
    return "".join(c if c == "\n" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def one_line(text: str) -> str:
    return clean(" ".join(text.split()))


def escaped(text: str) -> str:
    """Every character that a terminal or a reader of lines could obey, newlines included, as an
    escape: ``\\n``, ``\\x1b``, ``\\u202e``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def escaped_json(document: str) -> str:
    """The same document. JSON leaves DEL, C1, line separators and BiDi controls as they are; they
    can stand in strings only, where an escape has the same meaning."""
    if document.isprintable():
        return document
    return "".join(c if c == "\n" or c.isprintable() else _json_escape(c) for c in document)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def shorten_middle(name: str, width: int) -> str:
    """Cuts a name in the middle, because task names differ at their ends and beginnings."""
    if len(name) <= width:
        return name
    head = max(0, width - 1) * 2 // 5
    tail = max(0, width - 1 - head)
    return name[:head] + _ELLIPSIS + (name[-tail:] if tail else "")


def shorten_end(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 1)] + _ELLIPSIS
