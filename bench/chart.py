"""Bars as SVG: one drawing for light and dark pages, without script, with the reader's fonts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_BAR, _VALUE, _ROW, _GAP = 360, 90, 20, 14
#: The width of a letter in a wide font, because the reader's font is unknown.
_LETTER = 7.2
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#57606a}.t{font-weight:600}"
    ".b{fill:#8b949e}.o{fill:#2f81f7}"
    "@media(prefers-color-scheme:dark){text{fill:#b1bac4}.b{fill:#6e7681}}"
)


@dataclass(frozen=True)
class Bar:
    """``ours``: drawn in the colour of Freehold."""

    label: str
    value: float
    text: str
    ours: bool = False


@dataclass(frozen=True)
class Group:
    """Bars on one scale, under a title."""

    title: str
    bars: Sequence[Bar]


def draw(title: str, groups: Sequence[Group]) -> str:
    """Returns the whole picture. Screen readers read its title."""
    parts: list[str] = []
    longest = max((len(bar.label) for group in groups for bar in group.bars), default=0)
    left = 16 + int(longest * _LETTER)
    y = _GAP
    for group in groups:
        y += _ROW
        parts.append(f'<text class="t" x="8" y="{y}">{escape(group.title)}</text>')
        most = max((bar.value for bar in group.bars), default=0.0) or 1.0
        for bar in group.bars:
            y += _ROW
            width = max(1.0, round(bar.value / most * _BAR, 1))
            parts.append(f'<text x="8" y="{y}">{escape(bar.label)}</text>')
            parts.append(
                f'<rect class="{"o" if bar.ours else "b"}" x="{left}" y="{y - 11}" '
                f'width="{width}" height="12" rx="2"/>'
            )
            parts.append(f'<text x="{left + width + 6}" y="{y}">{escape(bar.text)}</text>')
        y += _GAP
    across, down = left + _BAR + _VALUE, y + _GAP
    size = f'width="{across}" height="{down}" viewBox="0 0 {across} {down}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    body = "\n".join([head, f"<title>{escape(title)}</title>", f"<style>{_STYLE}</style>", *parts])
    return f"{body}\n</svg>\n"
