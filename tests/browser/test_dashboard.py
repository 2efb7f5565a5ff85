"""The dashboard in a real browser: policy, hostile text, accessibility, keys, updates."""

from __future__ import annotations

import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page, expect

from freehold import Context, Freehold, Task
from freehold.dashboard import TABLE
from freehold.http_auth import Role
from freehold.model.job import NewJob
from freehold.model.state import State
from freehold.model.timing import Every
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


def every_page(app: Freehold) -> tuple[str, ...]:
    """The addresses of at least one page of each route."""
    fill(app)
    flows = [f"/flows/{flow_id}" for flow_id in (batch(app), workflow(app))]
    work(app)
    operator = app.operator
    operator.put_schedule("nightly", Every(seconds=3600.0), NewJob(task="greet"), by="ann")
    bulk = operator.bulk.start("pause", JobFilter(queue="mail"), by="ann", reason="a look")
    jobs = operator.jobs(JobFilter()).jobs
    ended = next(job.id for job in jobs if job.report)
    waiting = next(job.id for job in jobs if job.state is State.QUEUED)
    (lease, *_) = operator.show(ended).leases
    return (
        *(*PAGES, *flows, f"/jobs/{jobs[-1].id}", f"/actions?verb=cancel&ids={jobs[-1].id}"),
        *(f"/jobs/{waiting}/amend?priority=3", f"/jobs/{ended}/clone", f"/bulk/{bulk.id}"),
        *("/schedules/nightly", f"/workers/{lease.owner}"),
    )


def routes_without(paths: tuple[str, ...]) -> set[str]:
    """Routes of pages that none of the addresses has."""
    found = {r.at for r in TABLE if r.method == "GET" and r.role is not Role.ANYONE}
    for path in paths:
        at = path.partition("?")[0]
        found = {each for each in found if not re.fullmatch(re.sub(r"\{.*?\}", "[^/]+", each), at)}
    return found - {"/live"}


def serious(page: Page, path: str) -> list[tuple[object, ...]]:
    """Findings of axe about a page that is open, in both themes."""
    page.evaluate(Axe().axe_script)
    found: list[tuple[object, ...]] = []
    for theme, rules in (("light", _TAGS), ("dark", ["color-contrast"])):
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        result = page.evaluate("(only) => axe.run({runOnly: only})", rules)
        found += [
            (path, theme, each["id"], [node["html"][:150] for node in each["nodes"]][:3])
            for each in result["violations"]
            if each["impact"] in ("serious", "critical")
        ]
    return found


@pytest.mark.parametrize("part", range(_PAGE_PARTS))
def test_every_page_obeys_its_policy_and_is_accessible_in_both_themes(
    app: Freehold, tab: Tab, part: int
) -> None:
    paths, found = every_page(app), []
    assert routes_without(paths) == set()
    for path in paths[part::_PAGE_PARTS]:
        tab.open(path)
        found += serious(tab.page, path)
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


#: What keys and names accept, which refuse signs that are not shown.
KEYS = ["".join(filter(str.isprintable, text))[:150] for text in HOSTILE]
#: Names of schedules have the signs of addresses only.
SCHEDULE = "javascript:alert..1"


def durable(app: Freehold) -> Task[..., Any, Any]:
    """A task with steps and signals, which ends by waiting for one that is not sent."""

    @app.task(name="durable")
    async def durable(ctx: Context, texts: list[str]) -> None:
        for key, text in zip(KEYS, texts, strict=False):
            await ctx.step(key, _same, text)
            await ctx.wait_for_signal(f"signal {key}", str)
        await ctx.wait_for_signal(f"never {KEYS[0]}", str)

    return durable


async def _same(text: str) -> str:
    return text


def hostile_jobs(app: Freehold) -> list[str]:
    """The pages of jobs with a hostile string in every field, of a workflow and a lane."""
    greet, operator = app.tasks.get("greet"), app.operator
    with app.workflow("".join(filter(str.isprintable, "".join(_PARTS)))[:150]) as flow:
        for text, key in zip(_PARTS, KEYS, strict=False):
            flow.add(greet, text, name=key)
    operator.cancel_flow(flow.id, by=HOSTILE[0][:90], reason=HOSTILE[6])
    ids = []
    for text, key in zip(HOSTILE, KEYS, strict=True):
        job = greet.using(target=key, unique_key=key, meta={"k": key[:100]}).enqueue(text)
        operator.pause(job.id, by=key[:90], reason=text)
        ids.append(job.id)
    operator.pause_queue("mail", by=HOSTILE[0], reason=HOSTILE[6])
    return [f"/flows/{flow.id}", *(f"/jobs/{job_id}" for job_id in ids[-len(_PARTS) :])]


def hostile_rest(app: Freehold) -> list[str]:
    """The pages of steps and signals by name and value, a schedule, and a tenant."""
    job_id = durable(app).enqueue(list(_PARTS)).id
    for text, key in zip(_PARTS, KEYS, strict=False):
        assert app.send_signal(f"signal {key}", text, by=key[:90])
    work(app, durable)
    assert len(app.operator.show(job_id).steps) == 2 * len(_PARTS) + 1
    operator = app.operator
    operator.put_schedule(
        SCHEDULE, Every(seconds=3600.0), NewJob(task="greet"), by=KEYS[0], reason=HOSTILE[0]
    )
    operator.pause_schedule(SCHEDULE, by=KEYS[1], reason=HOSTILE[1])
    app.tenants.create("ours")
    app.tenants.pause("ours", by=KEYS[2], reason=HOSTILE[2])
    return [f"/schedules/{SCHEDULE}", "/schedules", "/tenants", f"/jobs/{job_id}"]


def test_hostile_strings_in_every_field_stay_text(app: Freehold, tab: Tab) -> None:
    paths = ["/", "/jobs", "/lanes", "/events", "/audit", "/queues", "/queues/mail", "/failures"]
    paths += ["/workflows", *hostile_jobs(app)]
    newest = paths[-1]
    paths += hostile_rest(app)
    for path in paths:
        tab.open(path)
        assert tab.page.locator("h1").count() == 1, path
    tab.page.get_by_role("button", name="Show").click()
    expect(tab.page.locator("td pre")).to_have_count(2 * len(_PARTS), timeout=TIMEOUT_MS)
    for text in _PARTS:
        tab.page.goto(f"{tab.address}/ui/jobs")
        tab.page.fill("#search", f'lane:"{text}"')
        tab.page.press("#search", "Enter")
        tab.page.wait_for_load_state()
    tab.open(newest)
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
