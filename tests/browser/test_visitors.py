"""Each page once for each kind of visitor, in a real browser, with JavaScript and without it.

`scripts/browser --long` visits all of them and prints what each visitor saw; the short form visits
a few pages, because every page of every role is also requested over ASGI.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from freehold import Freehold
from freehold.dashboard import TABLE
from freehold.http_auth import Role
from tests.browser.conftest import Tab, watched
from tests.browser.test_dashboard import serious
from tests.dashboard.test_authorization import ADMITTED, EXPECTED, NOT_FOR_TENANTS, SIGN_IN
from tests.dashboard.test_pages import fill
from tests.http.api_client import TOKENS, served, set_tokens, settings_with
from tests.sizes import is_long

pytestmark = [pytest.mark.needs_browser, pytest.mark.requirement("N17")]
#: A page of each route that a link leads to.
ROUTES = [
    route
    for route in TABLE
    if route.method == "GET" and route.role is not Role.ANYONE and route.at != "/live"
]
SHORT = {"/", "/audit"}
ROLE_NAMES = ("viewer", "operator", "admin", "admin@ours", "admin@other", None)


def path_of(at: str) -> str:
    path = at.format(id=1, name="default", target="a%2Fb", owner="nobody")
    return f"{path}?verb=cancel&ids=1" if at == "/actions" else path


@pytest.fixture
def guarded(app: Freehold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """With a token of each role."""
    tokens = set_tokens(monkeypatch)
    for name in ("ours", "other"):
        app.tenants.create(name)
    fill(app)
    with served(app, settings_with(tmp_path, *tokens, port=0)) as where:
        yield where


def sign_in(page: Page, address: str, role: str | None) -> None:
    if role is None:
        return
    page.goto(f"{address}/ui/login")
    page.get_by_label("Token").fill(TOKENS[role])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/ui/**")


def seen(tab: Tab, prefix: str, at: str) -> str | int:
    response = tab.page.goto(f"{tab.address}/ui{prefix}{path_of(at)}")
    assert response is not None
    assert tab.page.locator("h1").count() == 1, at
    if tab.page.url.partition("?")[0].endswith("/ui/login"):
        return SIGN_IN
    return 403 if response.status == 403 else ADMITTED


def expected(role: str | None, prefix: str, at: str, needs: Role) -> str | int:
    found = EXPECTED[role][needs] if prefix or role is None or "@" not in role else ADMITTED
    is_of_one = bool(prefix) or (role is not None and "@" in role)
    if found is ADMITTED and is_of_one and f"GET {at}" in NOT_FOR_TENANTS:
        return 403
    return found


@pytest.mark.parametrize("script", [True, False] if is_long() else [False])
def test_each_page_shows_each_visitor_what_its_role_allows(
    browser: Browser, guarded: str, script: bool
) -> None:
    routes = [route for route in ROUTES if is_long() or route.at in SHORT]
    roles = ROLE_NAMES if is_long() else ("viewer", None)
    table: dict[str, list[str | int]] = {route.at: [] for route in routes}
    wrong = []
    for role in roles:
        context = browser.new_context(java_script_enabled=script)
        tab = watched(context, guarded) if script else Tab(context.new_page(), guarded)
        sign_in(tab.page, guarded, role)
        for route in routes:
            prefix = "/t/ours" if role is not None and "@" in role else ""
            found = seen(tab, prefix, route.at)
            table[route.at].append(found)
            wanted = expected(role, prefix, route.at, route.role)
            wrong += [(role, route.at, found, wanted)] if found != wanted else []
        context.close()
    show(table, [role or "nobody" for role in roles], script)
    assert wrong == []


def test_the_sign_in_and_pages_of_errors_are_accessible(browser: Browser, guarded: str) -> None:
    context = browser.new_context(reduced_motion="reduce")
    page, found = context.new_page(), []
    page.goto(f"{guarded}/ui/login?code=late")
    assert page.get_by_role("alert").count() == 1
    found += serious(page, "/login")
    sign_in(page, guarded, "viewer")
    for path in ("/jobs/4711", "/system", "/nothing"):
        page.goto(f"{guarded}/ui{path}")
        found += serious(page, path)
    assert found == []
    context.close()


def show(table: dict[str, list[str | int]], roles: list[str], script: bool) -> None:
    """Printed by `scripts/browser --long`."""
    lines = [
        f"{'with' if script else 'without'} JavaScript".ljust(24)
        + "".join(f"{r:>13}" for r in roles)
    ]
    lines += [at.ljust(24) + "".join(f"{cell!s:>13}" for cell in row) for at, row in table.items()]
    if is_long():
        print("\n" + "\n".join(lines), file=sys.__stderr__)
