"""The tables and charts of docs/performance.md, written from the newest results."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import flow_tables, tables
from bench.against import verdict
from bench.chart import Bar, Group, draw

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "performance.md"
RESULTS = Path(__file__).parent / "results"
#: Earlier names in the results -> present names.
_NAMES: dict[str, str] = json.loads((RESULTS / "names.json").read_text())
_KINDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "core": tables.core,
    "growth": tables.growth,
    "wide": tables.growth,
    "wake": tables.wake,
    "mixed": tables.mixed,
    "flows": flow_tables.flows,
}
#: Shown before the first run of a kind is committed.
NONE_YET = "No run is committed yet: `scripts/bench {kind}`, then `scripts/bench report`."


def newest(results: Path, kind: str) -> dict[str, Any] | None:
    found = sorted(results.glob(f"*-{kind}.json"))
    if not found:
        return None
    return dict(json.loads(found[-1].read_text(), object_pairs_hook=_with_present_names))


def _with_present_names(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Results are never edited, so older ones have older names of contenders and keys."""
    return {_NAMES.get(name, name): value for name, value in pairs}


def page(text: str, results: Path) -> str:
    """Returns the page with the text between its markers replaced."""
    for kind, render in _KINDS.items():
        document = newest(results, kind)
        table = NONE_YET.format(kind=kind) if document is None else render(document)
        if document is not None and kind in _CHARTS:
            table += f"\n\n![{kind}: the figures above as bars](performance-{kind}.svg)"
        parts = re.split(rf"<!-- {kind} -->\n.*?\n<!-- /{kind} -->", text, flags=re.DOTALL)
        if len(parts) != 2:
            raise ValueError(f"the page needs <!-- {kind} --> and <!-- /{kind} -->, once each")
        before, after = parts
        text = f"{before}<!-- {kind} -->\n{table}\n<!-- /{kind} -->{after}"
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
    render = {**_KINDS, "against": verdict.table}[document["name"]]
    sys.stdout.write(render(document) + "\n")


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
    return draw("Freehold, the raw limit and its peers", groups)


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
                Bar(
                    tables.growth_label(name, document["sizes"]),
                    value / base,
                    f"{value / base:.2f}",
                    True,
                )
                for name, found in medians.items()
                if (value := read(found)) is not None and (base := read(clean))
            ],
        )
        for title, read in measures
    ]
    return draw("What a job costs while everything around it grows", groups)


_CHARTS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "core": _core,
    "growth": _growth,
    "wide": _growth,
}
