"""URLs as they may be shown: never with a password."""

from __future__ import annotations

import re

#: A password with a bare "@", "/" or "?" in it makes parts of itself look like a host or a path;
#: such a URL does not match, and is not shown.
_SHOWABLE = re.compile(
    r"[^:/]+://"
    r"(?:(?P<user>[^:@/?#]*)(?::[^:@/?#]*)?@)?"
    r"(?P<host>(?:\[[0-9A-Fa-f:.]*\]|[^\[\]:@/?#])*(?::\d+)?(?:,[^\[\]:@/?#]*(?::\d+)?)*)"
    r"(?P<path>/[^@?#]*)?(?:[?#].*)?",
    re.DOTALL,
)


def redacted(url: str) -> str:
    """The URL without its password and parameters; parts that are ambiguous are left out."""
    scheme, separator, _ = url.partition("://")
    if not separator:
        return url
    shown = _SHOWABLE.fullmatch(url)
    if shown is None or ("@" in url and shown["user"] is None):
        return f"{scheme}://…"
    user = f"{shown['user']}@" if shown["user"] else ""
    return f"{scheme}://{user}{shown['host']}{shown['path'] or ''}"
