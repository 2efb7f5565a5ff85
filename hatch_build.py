"""The README as the description of the package, with links that work on an index page.

In the repository its links are relative. Elsewhere they would lead nowhere, so the build makes them
absolute by `[project.urls]`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(\]\()(?![a-z]+:|#)([^)\s]+)(\))")


class ReadmeHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_absolute_links(text, metadata["urls"]),
        }


def with_absolute_links(text: str, urls: dict[str, str]) -> str:
    return _LINK.sub(lambda found: found[1] + _address(found[2], urls) + found[3], text)


def _address(link: str, urls: dict[str, str]) -> str:
    """`docs/tasks.md#keys` is a page of the site, `docs/demo.svg` a file of it, all else a file of
    the source."""
    path, _, anchor = link.partition("#")
    if not path.startswith("docs/"):
        return urls["Source"] + path
    page = path.removeprefix("docs/")
    if page.endswith(".md"):
        page = page.removesuffix(".md").removesuffix("index") + "/"
    return urls["Documentation"] + page.lstrip("/") + (f"#{anchor}" if anchor else "")
