"""The dashboard in a real browser: policy, hostile text, accessibility, keys, updates."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import expect

from freehold import Freehold
from freehold.store.types import JobFilter
from tests.browser.conftest import Tab, work
from tests.dashboard.test_flows import batch, workflow
from tests.dashboard.test_pages import PAGES, fill

pytestmark = [pytest.mark.needs_browser, pytest.mark.requirement("N17")]
#: Generous: only against hangs.
TIMEOUT_MS = 120_000
#: A busy machine needs minutes for all pages: each test has a part of them.
_PAGE_PARTS = 4
_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


@pytest.mark.parametrize("part", range(_PAGE_PARTS))
def test_every_page_obeys_its_policy_and_is_accessible_in_both_themes(
    app: Freehold, tab: Tab, part: int
) -> None:
    fill(app)
    flows = [f"/flows/{flow_id}" for flow_id in (batch(app), workflow(app))]
    work(app)
    job_id = app.operator.jobs(JobFilter()).jobs[-1].id
    axe, found = Axe().axe_script, []
    paths = (*PAGES, *flows, f"/jobs/{job_id}", f"/actions?verb=cancel&ids={job_id}")
    for path in paths[part::_PAGE_PARTS]:
        tab.open(path)
        tab.page.evaluate(axe)
        for theme, rules in (("light", _TAGS), ("dark", ["color-contrast"])):
            tab.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
            result = tab.page.evaluate("(only) => axe.run({runOnly: only})", rules)
            found += [
                (path, theme, each["id"], [node["html"][:150] for node in each["nodes"]][:3])
                for each in result["violations"]
                if each["impact"] in ("serious", "critical")
            ]
        tab.check()
    assert found == []


_PARTS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "'><b onmouseover=alert(1)>x</b>",
    "javascript:alert(1)",
    "</textarea></title></pre><script src=//evil.example/x.js></script>",
    '<a hx-get="//evil.example/" hx-trigger="load">x</a>',
    '<div hx-on:load="alert(1)">',
    "{{ 7 * 7 }}{% raw %}",
    "<style>@import '//evil.example/x.css'</style>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<base href=//evil.example/>",
    "\u202egnitset\u0007\u001b[31m",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<form action=//evil.example><input type=submit autofocus onfocus=alert(1)>",
    "../../..//%2e%2e/%00",
    "<math><mi xlink:href='data:x,<script>alert(1)</script>'>",
    "data:text/html,<script>alert(1)</script>",
    "<object data=//evil.example/x.swf>",
    "`${alert(1)}`",
)
HOSTILE = [part.replace("alert(1)", f"alert({n})") + str(n) for n in range(10) for part in _PARTS]


def test_hostile_strings_in_every_field_stay_text(app: Freehold, tab: Tab) -> None:
    greet = app.tasks.get("greet")
    operator = app.operator
    with app.workflow("".join(filter(str.isprintable, "".join(_PARTS)))[:150]) as flow:
        for text in _PARTS:
            flow.add(greet, text, name="".join(filter(str.isprintable, text)))
    operator.cancel_flow(flow.id, by=HOSTILE[0][:90], reason=HOSTILE[6])
    for text in HOSTILE:
        key = "".join(filter(str.isprintable, text))[:150]  # what keys and names accept
        job = greet.using(target=key, unique_key=key, meta={"k": key[:100]}).enqueue(text)
        operator.pause(job.id, by=key[:90], reason=text)
    operator.pause_queue("mail", by=HOSTILE[0], reason=HOSTILE[6])
    newest = max(job.id for job in operator.jobs(JobFilter(limit=1)).jobs)
    paths = ["/", "/jobs", "/lanes", "/events", "/audit", "/queues", "/queues/mail", "/failures"]
    paths += ["/workflows", f"/flows/{flow.id}"]
    paths += [f"/jobs/{newest - n}" for n in range(len(_PARTS))]
    for path in paths:
        tab.open(path)
        assert tab.page.locator("h1").count() == 1
    for text in _PARTS:
        tab.page.goto(f"{tab.address}/ui/jobs")
        tab.page.fill("#search", f'lane:"{text}"')
        tab.page.press("#search", "Enter")
        tab.page.wait_for_load_state()
    tab.open(f"/jobs/{newest}")
    tab.page.get_by_role("button", name="Show").click()
    expect(tab.page.locator(".private pre").first).to_contain_text("alert(9)")
    tab.check()


def test_the_keyboard_alone_leads_from_the_overview_to_a_retried_job(
    app: Freehold, tab: Tab
) -> None:
    job_id = app.tasks.get("broken").enqueue("x").id
    work(app)
    tab.open("/")
    keyboard = tab.page.keyboard
    keyboard.press("g")
    keyboard.press("j")
    tab.page.wait_for_url("**/ui/jobs")
    keyboard.press("j")
    keyboard.press("Enter")
    tab.page.wait_for_url(f"**/ui/jobs/{job_id}")
    keyboard.press("r")
    tab.page.wait_for_url("**/ui/actions?verb=retry**")
    keyboard.type("the server is back")
    keyboard.press("Enter")
    expect(tab.page.locator(".done")).to_contain_text("1 job retried", timeout=TIMEOUT_MS)
    assert app.operator.show(job_id).job.state == "queued"
    tab.check()


def test_everything_works_without_javascript(app: Freehold, plain_tab: Tab) -> None:
    job_id = app.tasks.get("greet").enqueue("x").id
    page = plain_tab.page
    plain_tab.open("/jobs")
    page.locator(f"#job-{job_id} input").check()
    page.get_by_role("button", name="Pause").click()
    page.get_by_label("Reason").fill("a look")
    page.get_by_role("button", name="Pause 1 job").click()
    expect(page.locator(".done")).to_contain_text("1 job paused")
    page.get_by_role("link", name="Resume").click()
    page.get_by_role("button", name="Resume 1 job").click()
    page.get_by_role("link", name="default").click()
    page.locator("summary", has_text="Pause").click()
    page.get_by_label("Reason").first.fill("maintenance")
    page.get_by_role("button", name="Pause").first.click()
    expect(page.locator("main")).to_contain_text("maintenance")
    for path in PAGES:
        plain_tab.open(path)
        assert page.locator("h1").count() == 1
