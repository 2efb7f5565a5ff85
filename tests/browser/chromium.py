"""The browser of the tests: Chromium as the system has it, driven by Playwright."""

from __future__ import annotations

import os
import shutil

VARIABLE = "FREEHOLD_TEST_BROWSER"
_INSTALL = (
    "install Debian's package (`apt-get install chromium`), or name a Chromium in "
    f"{VARIABLE}; then `scripts/browser`"
)


def chromium() -> str | None:
    named = os.environ.get(VARIABLE)
    if named:
        return named
    found = (shutil.which(each) for each in ("chromium", "chromium-browser", "google-chrome"))
    return next((path for path in found if path), None)


def missing_browser() -> str | None:
    return None if chromium() else f"no Chromium found; {_INSTALL}"
