"""docs/performance.md shows the newest results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import report
from bench.chart import Bar, Group, draw
from bench.rounds import medians


def test_the_page_and_its_charts_agree_with_the_newest_results() -> None:
    """To update the page: scripts/bench report."""
    text = report.PAGE.read_text()
    assert report.page(text, report.RESULTS) == text
    for name, picture in report.charts(report.RESULTS).items():
        assert (report.DOCS / name).read_text() == picture


def test_a_run_becomes_a_table(tmp_path: Path) -> None:
    def figures(rate: float) -> dict[str, dict[str, float]]:
        return {
            "drain1": {"rate": rate},
            "drain2": {"rate": rate},
            "bulk": {"rate": rate},
            "one": {"rate": rate},
            "latency": {"p50": 1.0, "p99": 2.0},
        }

    document = {
        "name": "core",
        "date": "2000-01-02T00:00:00+00:00",
        "round_count": 3,
        "machine": {"cores": 2, "processor": "P", "memory_gib": 8.0},
        "versions": {"python": "3.11"},
        "load_average": [0.5, 1.5],
        "server": {"version": "18.1", "settings": {"fsync": "on"}},
        "failures": [],
        "contenders": {"pgqueuer": {"version": "1", "terms": "defaults"}},
        "absent": {"graphile": "graphile-worker is not installed"},
        "medians": {
            "raw-sql": figures(40_000),
            "freehold": figures(20_000),
            "pgqueuer": figures(10_000),
        },
    }
    (tmp_path / "2000-01-02-core.json").write_text(json.dumps(document))
    page = report.page(report.PAGE.read_text(), tmp_path)
    assert "| **freehold** | 20,000 | 0.50 | 20,000 |" in page
    assert "| drain, 1 process, to PgQueuer | 1.5 | 2.00 |" in page
    assert "- `graphile`: absent, graphile-worker is not installed" in page
    assert "3 interleaved rounds" in page
    assert "load average 0.5 to 1.5" in page
    assert list(report.charts(tmp_path)) == ["performance-core.svg"]


def test_a_page_without_its_markers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="core"):
        report.page("nothing", tmp_path)


def test_medians_are_taken_of_each_figure_over_the_rounds_that_have_it() -> None:
    rounds: list[dict[str, Any]] = [{"a": {"x": 1}, "b": 5}, {"a": {"x": 3}}, {"a": {"x": 100}}]
    assert medians(rounds) == {"a": {"x": 3}, "b": 5}


def test_bars_are_as_long_as_their_values() -> None:
    picture = draw("t", [Group("g", [Bar("<a>", 10.0, "10"), Bar("b", 5.0, "5", ours=True)])])
    assert 'class="b"' in picture
    assert 'width="360.0"' in picture
    assert 'width="180.0"' in picture
    assert "&lt;a&gt;" in picture
