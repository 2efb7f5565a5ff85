"""Pages that are open while things change: places, tabs, and a store that goes away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from freehold import Freehold
from freehold.dashboard.refreshing import Refreshing
from freehold.lab.devpostgres import DevPostgres
from tests.browser.conftest import Tab, watched, work
from tests.browser.test_dashboard import TIMEOUT_MS
from tests.http.api_client import app_on, served, settings_with
from tests.sizes import sized

pytestmark = [pytest.mark.needs_browser, pytest.mark.requirement("N14")]


def test_nothing_moves_under_the_pointer(app: Freehold, tab: Tab) -> None:
    broken = app.tasks.get("broken")
    first = broken.enqueue("x").id
    work(app)
    tab.open("/")
    live = tab.page.locator("#live-text")
    expect(live).to_have_text("live")
    row = tab.page.locator(f"#failed-{first}")
    row.locator("a").hover()
    place = row.bounding_box()
    second = broken.enqueue("y").id
    work(app)
    expect(live).to_have_text("held under the pointer", timeout=TIMEOUT_MS)
    assert row.bounding_box() == place
    assert tab.page.locator(f"#failed-{second}").count() == 0
    tab.page.mouse.move(5, 5)
    expect(tab.page.locator(f"#failed-{second}")).to_be_visible(timeout=TIMEOUT_MS)
    tab.check()


def test_a_page_that_is_looked_at_rarely_shows_when_it_was_updated(
    app: Freehold, tab: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Refreshing, "rest_seconds", 3600.0)
    pages = [tab.page, *(tab.page.context.new_page() for _ in range(4))]  # the last has no stream
    for page in pages:
        page.goto(f"{tab.address}/ui/queues")
    for page in (pages[0], pages[-1]):
        live = page.locator("#live-text")
        expect(live).to_have_text(re.compile(r"updated \d+ s ago"), timeout=TIMEOUT_MS)
    tab.check()


def test_focus_details_scroll_and_ticks_survive_updates(app: Freehold, tab: Tab) -> None:
    """A hundred of them in the long form."""
    greet = app.tasks.get("greet")
    ids = [each.id for each in app.enqueue_many([greet.using(delay=3600).prepare("x")] * 40)]
    tab.open("/jobs")
    expect(tab.page.locator("#live-text")).to_have_text("live")
    row = tab.page.locator(f"#job-{ids[3]}")
    row.locator("summary").click()
    row.locator("a.id").focus()
    tab.page.mouse.move(5, 5)
    place, scrolled = row.bounding_box(), tab.page.evaluate("scrollY")
    assert scrolled > 0
    for number in range(1, sized("UPDATES", short=4, long=100) + 1):
        greet.using(delay=3600).enqueue("y")
        text = "↑ 50+ new" if number >= 50 else f"↑ {number} new"
        expect(tab.page.locator("[data-new]")).to_have_text(text, timeout=TIMEOUT_MS)
    assert tab.page.evaluate("document.activeElement.textContent") == str(ids[3])
    assert row.locator("details").get_attribute("open") is not None
    assert (row.bounding_box(), tab.page.evaluate("scrollY")) == (place, scrolled)
    row.locator("input").check()
    greet.using(delay=3600).enqueue("z")
    expect(tab.page.locator("#live-text")).to_contain_text("paused", timeout=TIMEOUT_MS)
    assert row.locator("input").is_checked()
    tab.check()


def test_eight_tabs_at_once_show_a_change(app: Freehold, browser: Browser, address: str) -> None:
    job_id = app.tasks.get("greet").using(delay=3600).enqueue("x").id
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    paths = (
        "/",
        "/jobs",
        "/queues",
        "/lanes",
        "/workers",
        "/events",
        "/failures",
        f"/jobs/{job_id}",
    )
    tabs = []
    for path in paths[: sized("TABS", short=8, long=8)]:
        tab = watched(context, address)
        tab.open(path)
        tabs.append(tab)
    app.operator.pause(job_id, by="ann", reason="a look")
    last = tabs[-1]
    last.page.bring_to_front()
    expect(last.page.locator("h1 .state")).to_have_text("‖ paused", timeout=TIMEOUT_MS)
    for tab in tabs:
        tab.page.bring_to_front()
        tab.page.reload()
        assert tab.page.locator("h1").count() == 1
        tab.check()
    context.close()


@pytest.fixture
def server() -> Iterator[DevPostgres]:
    """A server of its own, which can be stopped."""
    made = DevPostgres()
    made.start()
    yield made
    made.close()


@pytest.mark.long_form
def test_a_page_survives_a_store_that_stops_and_starts(
    browser: Browser, server: DevPostgres, tmp_path: Path
) -> None:
    app = app_on(server.url)
    app.migrate()
    job_id = app.tasks.get("greet").using(delay=3600).enqueue("x").id
    with served(app, settings_with(tmp_path, port=0)) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{address}/ui/jobs/{job_id}")
        expect(page.locator("#live-text")).to_have_text("live")
        server.stop("immediate")
        expect(page.locator("#live-text")).to_have_text("the store is away", timeout=TIMEOUT_MS)
        assert page.locator("h1 .state").count() == 1  # what was shown stays
        server.start()
        app.operator.pause(job_id, by="ann")
        expect(page.locator("h1 .state")).to_have_text("‖ paused", timeout=TIMEOUT_MS)
        expect(page.locator("#live-text")).to_have_text("live", timeout=TIMEOUT_MS)
        context.close()
    app.close()
