"""docs/performance.md: its tables and charts come from the newest results, never by hand."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench import tables
from bench.chart import Bar, Group, drawn

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "performance.md"
_KINDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "core": tables.core,
    "growth": tables.growth,
    "wide": tables.growth,
    "wake": tables.wake,
}
#: Before the first run of a kind is committed.
NONE_YET = "No run is committed yet: `scripts/bench {kind}`, then `scripts/bench report`."


def newest(results: Path, kind: str) -> dict[str, Any] | None:
    found = sorted(results.glob(f"*-{kind}.json"))
    return json.loads(found[-1].read_text()) if found else None


def page(text: str, results: Path) -> str:
    """The page with what stands between the markers made anew."""
    for kind, told in _KINDS.items():
        document = newest(results, kind)
        made = NONE_YET.format(kind=kind) if document is None else told(document)
        if document is not None and kind in _CHARTS:
            made += f"\n\n![{kind}: the figures above as bars](performance-{kind}.svg)"
        parts = re.split(rf"<!-- {kind} -->\n.*?\n<!-- /{kind} -->", text, flags=re.DOTALL)
        if len(parts) != 2:
            raise ValueError(f"the page needs <!-- {kind} --> and <!-- /{kind} -->, once each")
        before, after = parts
        text = f"{before}<!-- {kind} -->\n{made}\n<!-- /{kind} -->{after}"
    return text


def charts(results: Path) -> dict[str, str]:
    """File name -> SVG."""
    return {
        f"performance-{kind}.svg": chart(document)
        for kind, chart in _CHARTS.items()
        if (document := newest(results, kind)) is not None
    }


def write(results: Path) -> None:
    PAGE.write_text(page(PAGE.read_text(), results))
    for name, picture in charts(results).items():
        (DOCS / name).write_text(picture)


def show(document: Mapping[str, Any]) -> None:
    sys.stdout.write(_KINDS[document["name"]](document) + "\n")


def _core(document: Mapping[str, Any]) -> str:
    measures = (
        ("drain with one process, jobs/s", ("drain1", "rate"), 0),
        ("drain with two processes, jobs/s", ("drain2", "rate"), 0),
        ("enqueue one by one, jobs/s", ("one", "rate"), 0),
        ("bulk enqueue, jobs/s", ("bulk", "rate"), 0),
        ("from enqueue to start, p99, ms (less is better)", ("latency", "p99"), 1),
    )
    groups = [
        Group(
            title,
            [
                Bar(name, value, tables.number(value, digits), name.startswith(tables.OURS))
                for name, found in document["medians"].items()
                if (value := tables.at(found, *path)) is not None
            ],
        )
        for title, path, digits in measures
    ]
    return drawn("Freehold, the raw limit and its peers", groups)


def _growth(document: Mapping[str, Any]) -> str:
    medians = document["medians"]
    clean = medians.get("clean", {})
    measures: tuple[tuple[str, Callable[[Mapping[str, Any]], float | None]], ...] = (
        ("jobs/s, of clean", lambda found: tables.at(found, "rate")),
        ("buffers per job, of clean", lambda found: tables.per_job(found, "buffers")),
        ("WAL per job, of clean", lambda found: tables.per_job(found, "wal_bytes")),
    )
    groups = [
        Group(
            title,
            [
                Bar(tables.grown(name, document["sizes"]), value / of, f"{value / of:.2f}", True)
                for name, found in medians.items()
                if (value := read(found)) is not None and (of := read(clean))
            ],
        )
        for title, read in measures
    ]
    return drawn("What a job costs while everything around it grows", groups)


_CHARTS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "core": _core,
    "growth": _growth,
    "wide": _growth,
}
