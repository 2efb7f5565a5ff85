"""llms.txt: the pages of the site with a sentence each; llms-full.txt: all of them as one text."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from scripts.site.paths import CONFIGURATION, SITE, SOURCE


def write_llms() -> None:
    project = tomllib.loads(CONFIGURATION.read_text("utf-8"))["project"]
    lines = [f"# {project['site_name']}", "", f"> {project['site_description']}", ""]
    full = []
    for section in project["nav"]:
        for title, pages in section.items():
            lines += [f"## {title}", ""]
            for name, path in navigation(pages):
                text = (SOURCE / path).read_text("utf-8")
                address = project["site_url"] + path.removesuffix(".md").removesuffix("index")
                lines.append(f"- [{name}]({address.rstrip('/')}/): {_first_sentence(text)}")
                full.append(text)
            lines.append("")
    (SITE / "llms.txt").write_text("\n".join(lines), encoding="utf-8")
    (SITE / "llms-full.txt").write_text("\n\n".join(full), encoding="utf-8")


def navigation(entry: Any) -> Iterator[tuple[str, str]]:
    """(title, path) of the navigation, at any depth."""
    if isinstance(entry, list):
        for each in entry:
            yield from navigation(each)
    else:
        for title, inner in entry.items():
            if isinstance(inner, str):
                yield title, inner
            else:
                yield from navigation(inner)


def _first_sentence(text: str) -> str:
    """Of the first paragraph that is no heading, table or code, without links."""
    for part in text.split("\n\n"):
        if re.match(r"[A-Z`*\[]", part):
            plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(part.split()))
            return re.split(r"(?<=\.)\s", plain)[0]
    return ""
