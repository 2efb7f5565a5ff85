"""Makes docs/dashboard-*.png: the demo runs, a worker is killed, and a real browser looks at it.

    scripts/screenshots [FOLDER] [WIDTHS] [THEMES] [PATHS]

Without arguments it makes the pictures of the docs. With them it makes one of each page, width and
theme in the folder, to be looked at: scripts/screenshots /tmp/shots 360,1024,1600 light,dark
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.chromium import chromium, missing_browser

DOCS = Path("docs")
_PATTERN = re.compile(r"(http://127\.0\.0\.1:\d+)/ui/login\?code=\S+")
_TIMEOUT_SECONDS = 120.0
PAGES = (
    *("/", "/jobs", "/jobs/{ORDER}", "/jobs/{ORDER}/amend", "/jobs/{ORDER}/clone", "/failures"),
    *("/batches", "/workflows", "/flows/{IMPORT}", "/flows/{MAILING}"),
    *("/queues", "/queues/demo-mail", "/lanes", "/lanes/account-99", "/limits", "/tasks"),
    *("/tasks/demo.order", "/workers", "/schedules", "/events", "/bulk", "/tenants", "/system"),
    *("/audit", "/help", "/jobs/999999", "/jobs?q=task:none"),
)


@contextmanager
def demo() -> Iterator[str]:
    """The address that signs in."""
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "freehold", "demo", "--serve", "--port=0", "--jobs=60"],
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            end = time.monotonic() + _TIMEOUT_SECONDS
            while True:
                out.seek(0)
                if found := _PATTERN.search(out.read()):
                    break
                if process.poll() is not None or time.monotonic() > end:
                    raise SystemExit("the demo did not start: try scripts/demo --serve")
                time.sleep(0.2)
            yield found[0]
        finally:
            process.terminate()
            process.wait()


def _read(url: str) -> Any:
    token = (Path.home() / ".cache").glob("freehold-*/api-token")
    headers = {"Authorization": f"Bearer {next(token).read_text().strip()}"}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as response:
        return json.load(response)


def order(address: str) -> int:
    """A job with steps that has been running for a while."""
    end = time.monotonic() + _TIMEOUT_SECONDS
    while time.monotonic() < end:
        for job in _read(f"{address}/api/jobs?task=demo.order&limit=20")["jobs"]:
            if job["state"] == "running" and (job["progress"] or {}).get("done", 0) >= 12:
                return int(job["id"])
        time.sleep(0.3)
    raise SystemExit("no order was running")


def flow(address: str, name: str) -> int:
    """The newest batch or workflow of this name."""
    flows = _read(f"{address}/api/flows")["flows"]
    return max(int(each["id"]) for each in flows if each["name"] == name)


def workflow_at_work(address: str) -> int:
    """One whose pages are being loaded."""
    end = time.monotonic() + _TIMEOUT_SECONDS
    while time.monotonic() < end:
        newest = flow(address, "nightly import")
        states = {
            node["name"]: node["state"] for node in _read(f"{address}/api/flows/{newest}/nodes")
        }
        if states["clean"] == "succeeded" and states["publish"] == "waiting":
            return newest
        time.sleep(0.2)
    raise SystemExit("no workflow was at work")


def take(page: Page, address: str, path: str, file: Path, height: int | None = None) -> None:
    page.goto(f"{address}/ui{path}")
    page.wait_for_function(
        "document.querySelector('time')?.title || !document.querySelector('time')"
    )
    size = page.viewport_size or {"width": 0, "height": 0}
    clip = {"x": 0, "y": 0, "width": size["width"], "height": height} if height else None
    page.screenshot(path=file, full_page=height is None, clip=clip)  # type: ignore[arg-type]


def for_docs(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 1240, "height": 900})
    time.sleep(25.0)  # so that the picture of workers has something to show
    page.goto(f"{address}/ui/workers")
    page.get_by_role("button", name="Kill a worker").click()
    expect(page.locator(".done")).to_contain_text("was killed")
    time.sleep(5.0)
    job = order(address)
    take(page, address, f"/jobs/{job}", DOCS / "dashboard-job.png", 900)
    page.emulate_media(color_scheme="dark")
    take(page, address, "/workers?minutes=1", DOCS / "dashboard-workers.png", 820)
    page.emulate_media(color_scheme="light")
    take(page, address, "/lanes/account-99", DOCS / "dashboard-lane.png", 560)
    take(page, address, "/", DOCS / "dashboard-overview.png", 760)
    take(page, address, f"/flows/{workflow_at_work(address)}", DOCS / "dashboard-workflow.png", 820)


def of_every_page(page: Page, address: str, arguments: list[str]) -> None:
    folder, widths, themes, *paths = arguments
    chosen = paths[0].split(",") if paths else PAGES
    ids = {
        "ORDER": order(address),
        "IMPORT": flow(address, "nightly import"),
        "MAILING": flow(address, "mailing"),
    }
    for path in chosen:
        for width in widths.split(","):
            for theme in themes.split(","):
                page.set_viewport_size({"width": int(width), "height": 900})
                page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
                name = re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-") or "overview"
                file = Path(folder) / f"{name}-{width}-{theme}.png"
                take(page, address, path.format(**ids), file)


def main() -> None:
    if missing := missing_browser():
        raise SystemExit(missing)
    with demo() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium())
        page = browser.new_context(reduced_motion="reduce").new_page()
        page.goto(address)
        page.wait_for_url("**/ui/")
        site = address.partition("/ui/")[0]
        if len(sys.argv) > 3:
            of_every_page(page, site, sys.argv[1:])
        else:
            for_docs(page, site)
        browser.close()


if __name__ == "__main__":
    main()
