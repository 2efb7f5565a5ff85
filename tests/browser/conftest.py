"""A served dashboard and pages of a real browser, which report what must not happen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, sync_playwright

from freehold import Freehold
from tests.browser.chromium import chromium, missing_browser
from tests.http.api_client import app_on, served, settings_with

_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
    window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Closed with its module: while it is open, its event loop counts as the running one of this
    thread, and no other test in it could start a loop."""
    if missing := missing_browser():
        pytest.fail(missing, pytrace=False)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium())
        try:
            yield opened
        finally:
            opened.close()


@dataclass
class Tab:
    """A page, and everything that went wrong in it."""

    page: Page
    address: str
    problems: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def open(self, path: str) -> None:
        self.page.goto(f"{self.address}/ui{path}")

    def refuse(self, dialog: Dialog) -> None:
        self.problems.append(dialog.message)
        dialog.dismiss()

    def check(self) -> None:
        """No dialog, script error or request elsewhere, and nothing that the policy refused."""
        self.problems += self.page.evaluate("window.violations ?? []")
        assert self.problems == []
        assert self.hosts <= {urlsplit(self.address).netloc}


def watched(context: BrowserContext, address: str) -> Tab:
    context.add_init_script(_WATCH)
    page = context.new_page()
    tab = Tab(page, address)
    page.on("dialog", tab.refuse)
    page.on("pageerror", lambda error: tab.problems.append(str(error)))
    page.on(
        "console",
        lambda message: tab.problems.append(message.text) if message.type == "error" else None,
    )
    page.on("request", lambda request: tab.hosts.add(urlsplit(request.url).netloc))
    return tab


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Freehold]:
    made = app_on(str(tmp_path / "jobs.db"))
    made.migrate()
    yield made
    made.close()


@pytest.fixture
def address(app: Freehold, tmp_path: Path) -> Iterator[str]:
    with served(app, settings_with(tmp_path, port=0)) as where:
        yield where


@pytest.fixture
def tab(browser: Browser, address: str) -> Iterator[Tab]:
    # Without transitions: colours are measured right after a change of the theme.
    context = browser.new_context(viewport={"width": 1200, "height": 900}, reduced_motion="reduce")
    yield watched(context, address)
    context.close()


@pytest.fixture
def plain_tab(browser: Browser, address: str) -> Iterator[Tab]:
    """Without JavaScript."""
    context = browser.new_context(java_script_enabled=False)
    yield Tab(context.new_page(), address)
    context.close()


def work(app: Freehold, define: Callable[[Freehold], object] = lambda _: None) -> None:
    """Runs a worker until it is idle: in a thread, because Playwright's event loop is in this one,
    and with an app of its own, because the served one belongs to the loop of its server.
    ``define`` adds tasks to that app."""

    def run() -> None:
        other = app_on(app.url)
        define(other)
        other.run_worker(until_idle=True)
        other.close()

    with ThreadPoolExecutor(1) as threads:
        threads.submit(run).result()
