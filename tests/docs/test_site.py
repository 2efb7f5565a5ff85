"""The pages of the site: all in the navigation, and the generated ones complete.

`scripts/docs` builds the site itself, and fails at a broken link or a request to another host.
"""

from __future__ import annotations

import re
import sqlite3
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

import freehold
from freehold.model.history import EventKind
from freehold.settings import SETTING_TYPES
from freehold.telemetry import COUNTERS, DURATIONS, GAUGES
from hatch_build import with_absolute_links
from scripts.site.check import findings
from scripts.site.cli_page import cli_page, command_names
from scripts.site.errors_page import errors, errors_page
from scripts.site.events_page import EVENTS, events_page
from scripts.site.http_page import http_page
from scripts.site.llms import navigation
from scripts.site.matrix import with_row
from scripts.site.metrics_page import metrics_page
from scripts.site.pages import for_the_site, generated
from scripts.site.paths import CONFIGURATION, DOCS, ROOT
from scripts.site.python_page import python_page
from scripts.site.settings_page import settings_page
from scripts.site.sql_page import FUNCTIONS, sql_page, view_columns


def _nav() -> list[str]:
    project = tomllib.loads(CONFIGURATION.read_text("utf-8"))["project"]
    return [path for _, path in navigation(project["nav"])]


def test_every_page_is_in_the_navigation_once() -> None:
    """A new page needs a line in zensical.toml."""
    written = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    decisions = {path for path in written if path.startswith("decisions/")}
    assert sorted(_nav()) == sorted((written - decisions) | generated().keys())


def test_the_reference_of_python_has_every_public_name() -> None:
    text = python_page()
    classes = {kind.__name__ for kind in errors()}  # on a page of their own
    assert [n for n in freehold.__all__ if n not in classes and f"### {n}\n" not in text] == []
    assert "``" not in text.replace("```", "")
    for name, member in (("ctx.batch", "add("), ("ctx.workflow", "result_of(")):
        assert f"| `{member}" in text.partition(f"### {name}\n")[2].partition("###")[0], name
    assert text.index("| `batch(") < text.index("| `abatch(")


def test_the_reference_of_the_command_line_has_every_command() -> None:
    text = cli_page()
    assert [name for name in command_names() if f"# {name}\n" not in text] == []
    assert "`--until-idle`" in text


def test_the_references_of_http_settings_and_errors_are_complete() -> None:
    assert "`POST /api/jobs/{id}/cancel`" in http_page()
    settings = settings_page()
    for name in SETTING_TYPES:
        row = re.search(rf"^\| `{name.rpartition('.')[2]}` \| .*\|$", settings, re.MULTILINE)
        assert row is not None, name
        assert "|  |" not in row[0], f"{name} has no comment in default.toml"
    assert [kind.__name__ for kind in errors() if f"`{kind.__name__}`" not in errors_page()] == []


def test_the_reference_of_metrics_has_every_metric() -> None:
    text = metrics_page()
    names = [*(f"{name}_total" for name in COUNTERS), *DURATIONS, *GAUGES, "queue_ready", "jobs"]
    assert [name for name in names if f"`freehold_{name}`" not in text] == []
    assert "| `freehold_queue_ready` | gauge | `queue` |" in text


def test_every_kind_of_event_is_explained() -> None:
    """A new kind needs a line in scripts/site/events_page.py."""
    assert set(EVENTS) == set(EventKind)
    assert "`lane_blocked`" in events_page()


def test_the_reference_of_sql_shows_the_newest_definitions() -> None:
    text = sql_page()
    assert all(f"freehold.{name}(" in text for name in FUNCTIONS)
    assert "throttle_seconds double precision" in text


def test_the_view_that_the_reference_of_sql_describes_exists(tmp_path: Path) -> None:
    """On SQLite, whose view has the same columns."""
    app = freehold.Freehold(str(tmp_path / "view.db"))
    app.migrate()
    app.close()
    connection = sqlite3.connect(tmp_path / "view.db")
    columns = {row[1] for row in connection.execute("pragma table_info(jobs)")}
    connection.close()
    assert columns == set(view_columns())


@pytest.mark.parametrize("rule", ["alerts.yaml"])
def test_alerts_name_metrics_that_exist_and_the_page_explains_each(rule: str) -> None:
    file: dict[str, Any] = yaml.safe_load((ROOT / "deploy/prometheus" / rule).read_text("utf-8"))
    reference, page = metrics_page(), (DOCS / "monitoring.md").read_text("utf-8")
    rules = [each for group in file["groups"] for each in group["rules"]]
    assert len(rules) > 10
    for each in rules:
        named = re.findall(r"freehold_\w+", each["expr"])
        assert named
        assert [name for name in named if f"`{name}`" not in reference] == []
        assert f"| `{each['alert']}` |" in page


def test_the_description_of_the_package_has_no_relative_link() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    text = with_absolute_links((ROOT / "README.md").read_text("utf-8"), project["urls"])
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert f"]({project['urls']['Documentation']}deploy/#sqlite-files)" in text


def test_a_page_of_the_site_links_to_pages_only() -> None:
    text = for_the_site("see [shop](../examples/fastapi/shop.py) and `Path \\| str`")
    assert text == "see `shop` and `Path | str`"


def test_the_check_of_the_site_finds_broken_links_and_other_hosts(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<h2 id="a">A</h2><a href="#a">good</a><a href="#b">bad</a><a href="gone/">bad</a>'
        '<script src="https://cdn.example/x.js"></script><link rel="canonical" href="https://x.example/">'
    )
    assert list(findings(tmp_path)) == [
        "index.html loads https://cdn.example/x.js",
        "index.html: a link to #b, which has no such heading",
        "index.html: a link to gone/, which does not exist",
    ]


def test_a_row_of_the_tables_of_versions_is_replaced_in_its_own_table() -> None:
    head = "| version |\n|---|\n"
    empty = f"<!-- a -->\n{head}<!-- /a -->\n<!-- b -->\n{head}<!-- /b -->\n"
    once = with_row(with_row(empty, "A", "10", "| A 10 | x |"), "A", "9", "| A 9 | x |")
    again = with_row(once, "A", "10", "| A 10 | y |")
    rows = "| A 9 | x |\n| A 10 | y |\n"
    assert again == empty.replace(f"<!-- a -->\n{head}", f"<!-- a -->\n{head}{rows}")
