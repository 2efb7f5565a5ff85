"""The built site loads nothing from another host, and its links lead somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scripts.site.paths import SITE

#: Attributes by which a browser loads something, by element; not the links that a reader clicks.
_LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "link": "href",
    "form": "action",
}
#: Kinds of `<link>` that load nothing.
_NAMED_ONLY = {"canonical", "next", "prev", "alternate"}


class _Page(HTMLParser):
    """Addresses that a page loads, those that it links to, and its own anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.linked: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        address = given.get(_LOADED.get(tag, ""), "")
        if address and given.get("rel") not in _NAMED_ONLY:
            self.loaded.append(address)
        if tag == "a" and "href" in given:
            self.linked.append(given["href"])


def findings(site: Path = SITE) -> Iterator[str]:
    for path in sorted(site.rglob("*.html")):
        page = _read(path)
        name = path.relative_to(site).as_posix()
        yield from (f"{name} loads {each}" for each in page.loaded if urlsplit(each).netloc)
        if path.name != "404.html":  # its links are from the root of the server
            yield from (f"{name}: {each}" for each in _broken(page, path))


def _broken(page: _Page, path: Path) -> Iterator[str]:
    for address in page.linked:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        target = target / "index.html" if target.is_dir() else target
        if not target.is_file():
            yield f"a link to {address}, which does not exist"
        elif not _has_anchor(target, unquote(parts.fragment)):
            yield f"a link to {address}, which has no such heading"


def _has_anchor(target: Path, name: str) -> bool:
    return not name or target.suffix != ".html" or name in _read(target).anchors


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text("utf-8"))
    return page
