"""The folder that the site is built from: the pages of docs/, and those made from the code."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from scripts.site.cli_page import cli_page
from scripts.site.errors_page import errors_page
from scripts.site.events_page import events_page
from scripts.site.http_page import http_page
from scripts.site.metrics_page import metrics_page
from scripts.site.paths import DOCS, LOOK_UP, ROOT, SOURCE
from scripts.site.python_page import python_page
from scripts.site.settings_page import settings_page
from scripts.site.sql_page import sql_page


def generated() -> dict[str, Callable[[], str]]:
    """Path in the site -> what makes its Markdown."""
    look_up = {
        "python": python_page,
        "cli": cli_page,
        "http": http_page,
        "configuration": settings_page,
        "sql": sql_page,
        "metrics": metrics_page,
        "events": events_page,
        "errors": errors_page,
    }
    return {
        **{f"{LOOK_UP}/{name}.md": make for name, make in look_up.items()},
        "decisions/index.md": decisions_page,
        "changes.md": lambda: _from_the_root("CHANGELOG.md"),
        "contributing.md": lambda: _from_the_root("CONTRIBUTING.md"),
        "security-policy.md": lambda: _from_the_root("SECURITY.md"),
    }


def write_pages(folder: Path = SOURCE) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder)
    for path, make in generated().items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(make(), encoding="utf-8")
    for page in folder.rglob("*.md"):
        page.write_text(for_the_site(page.read_text("utf-8")), encoding="utf-8")


def for_the_site(text: str) -> str:
    """Python-Markdown shows a backslash before a pipe inside of code; other readers need it there.
    What lies outside of docs/ is no page of the site: only its name stays."""
    text = re.sub(r"`[^`\n]*\\\|[^`\n]*`", lambda found: found[0].replace("\\|", "|"), text)
    return re.sub(r"\[([^\]]+)\]\((?:\.\./)+(?:examples|src|deploy)/[^)]*\)", r"`\1`", text)


def decisions_page() -> str:
    rows = "".join(f"- [{title}]({name})\n" for name, title in decisions())
    intro = "Each page: context, choice, what was measured, what was given up."
    return f"# Decisions\n\n{intro}\n\n{rows}"


def decisions() -> Iterator[tuple[str, str]]:
    for path in sorted((DOCS / "decisions").glob("*.md")):
        yield path.name, path.read_text("utf-8").partition("\n")[0].removeprefix("# ")


def _from_the_root(name: str) -> str:
    """A page of the repository's root, with links as from docs/."""
    text = (ROOT / name).read_text("utf-8")
    names = {"CHANGELOG.md": "changes.md", "CONTRIBUTING.md": "contributing.md"}
    text = re.sub(r"\]\(docs/", "](", text)
    return re.sub(r"\]\((\w+\.md)\)", lambda found: f"]({names.get(found[1], found[1])})", text)
