"""Pieces of Markdown for the generated pages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    """One line. Pipes inside of code are no borders of cells; others are escaped."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(p if p.startswith("`") else p.replace("|", "\\|") for p in parts)


def code(text: str, language: str = "") -> str:
    return f"```{language}\n{text.rstrip()}\n```\n"


def prose(docstring: str | None) -> str:
    """A docstring as Markdown: names in double backticks become code, examples code blocks."""
    text = inspect.cleandoc(docstring or "")
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def first_sentence(docstring: str | None) -> str:
    return prose(docstring).partition("\n\n")[0].replace("\n", " ")


def page(title: str, intro: str, *parts: str) -> str:
    return "\n".join([f"# {title}\n", f"{intro}\n", *parts])
