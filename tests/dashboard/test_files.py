"""The files of the dashboard: scripts of others, style, templates, and the headers of pages."""

from __future__ import annotations

import gzip
import hashlib
import re
import tomllib
from pathlib import Path

import pytest

import freehold.dashboard
from freehold.dashboard import static_files
from tests.dashboard.browser_client import BrowserClient
from tests.http.api_client import settings_with

PACKAGE = Path(freehold.dashboard.__file__).parent
TEMPLATES = sorted((PACKAGE / "templates").glob("*.html"))
pytestmark = pytest.mark.requirement("N17")


def test_scripts_of_others_are_those_that_the_list_names() -> None:
    listed = tomllib.loads((PACKAGE / "static" / "vendor.toml").read_text("utf-8"))
    found = set()
    for name, library in listed.items():
        assert library["version"], name
        assert (PACKAGE / "static" / library["licence_file"]).read_text("utf-8")
        for path, file in library["files"].items():
            content = (PACKAGE / "static" / path).read_bytes()
            assert hashlib.sha256(content).hexdigest() == file["sha256"], path
            found.add(path)
    there = {
        path.relative_to(PACKAGE / "static").as_posix()
        for path in (PACKAGE / "static" / "vendor").glob("*.js")
    }
    assert there == found


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_templates_have_no_inline_script_or_style(template: Path) -> None:
    """The content security policy forbids them, and htmx attributes that need eval."""
    text = template.read_text("utf-8")
    assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=|javascript:", text)
    assert not re.search(r"hx-on|hx-vals|js:|\|\s*safe|hx-live", text)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_templates_change_no_names_in_sentences(template: Path) -> None:
    """`capitalize` makes all letters but the first one small: `sentence` is for texts."""
    text = template.read_text("utf-8")
    assert not re.search(r"(?:problem|wait|reason|detail|visible)\s*\|\s*capitalize", text)


def test_only_one_file_makes_markup_by_hand() -> None:
    naming = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "Markup" in path.read_text("utf-8")
    }
    assert naming == {"rendering.py"}


def test_pages_forbid_scripts_of_others_framing_and_caching(sqlite_board: BrowserClient) -> None:
    visitor = sqlite_board.visitor()
    for path in ("/", "/jobs", "/jobs/99", "/nothing", "/login"):
        headers = visitor.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


def test_files_are_kept_by_browsers_until_they_change(sqlite_board: BrowserClient) -> None:
    visitor = sqlite_board.visitor()
    for name, content in static_files.static_files().items():
        response = visitor.get(f"/static/{static_files.version()}/{name}")
        assert response.content == content
        assert "immutable" in response.headers["cache-control"]
        assert "set-cookie" not in response.headers
        assert visitor.get(f"/static/older/{name}").status_code == 404
    for wrong in ("../dispatch.py", "vendor.toml", "%2e%2e/dispatch.py"):
        assert visitor.get(f"/static/{static_files.version()}/{wrong}").status_code == 404


def test_a_page_refers_to_its_own_files_only(sqlite_board: BrowserClient) -> None:
    for at in ("/ui", "/a/b", ""):
        sqlite_board.open(settings_with(sqlite_board.folder), at=at)
        page = sqlite_board.visitor().page("/queues")
        links = re.findall(r'(?:href|src|action|hx-get)="([^"]*)"', page)
        assert len(links) > 20
        assert all(link.startswith((f"{at}/", "#")) for link in links), links


def test_the_first_page_is_small(sqlite_board: BrowserClient) -> None:
    page = sqlite_board.visitor().get("/").content
    parts = [page, *static_files.static_files().values()]
    assert sum(len(gzip.compress(part)) for part in parts) < 60_000
