"""Every page for every kind of caller, at two places, with and without a tenant in the path."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import httpx
import pytest
from starlette.routing import Route as StarletteRoute

from freehold.dashboard import TABLE, dashboard
from freehold.http.events import STREAM
from freehold.http.routes import Route
from freehold.http_auth import Caller, Role
from freehold.model.job import NewJob
from freehold.model.timing import Every
from freehold.store.types import JobFilter
from tests.dashboard.browser_client import BrowserClient, Visitor
from tests.dashboard.test_flows import workflow
from tests.dashboard.test_pages import PAGES as SHOWN
from tests.dashboard.test_pages import PART, fill
from tests.http.api_client import settings_with

pytestmark = pytest.mark.requirement("N17")

ADMITTED = "admitted"
SIGN_IN = "sign in"
#: What each kind of visitor meets, by the role of a route.
EXPECTED: dict[str | None, dict[Role, str | int]] = {
    None: {Role.VIEWER: SIGN_IN, Role.OPERATOR: SIGN_IN, Role.ADMIN: SIGN_IN},
    "viewer": {Role.VIEWER: ADMITTED, Role.OPERATOR: 403, Role.ADMIN: 403},
    "operator": {Role.VIEWER: ADMITTED, Role.OPERATOR: ADMITTED, Role.ADMIN: 403},
    "admin": {Role.VIEWER: ADMITTED, Role.OPERATOR: ADMITTED, Role.ADMIN: ADMITTED},
    "admin@ours": {Role.VIEWER: ADMITTED, Role.OPERATOR: ADMITTED, Role.ADMIN: ADMITTED},
    "admin@other": {Role.VIEWER: 403, Role.OPERATOR: 403, Role.ADMIN: 403},
}
#: The roles of the pages, repeated: a new route must be added here, deliberately.
ROLES = {
    "GET /static/{version}/{file}": Role.ANYONE,
    "GET /login": Role.ANYONE,
    "POST /login": Role.ANYONE,
    "POST /logout": Role.VIEWER,
    "POST /theme": Role.VIEWER,
    "GET /help": Role.VIEWER,
    "GET /": Role.VIEWER,
    "GET /jobs": Role.VIEWER,
    "GET /jobs/{id}": Role.VIEWER,
    "POST /jobs/{id}/private": Role.OPERATOR,
    "GET /jobs/{id}/amend": Role.OPERATOR,
    "POST /jobs/{id}/amend": Role.OPERATOR,
    "GET /jobs/{id}/clone": Role.OPERATOR,
    "POST /jobs/{id}/clone/arguments": Role.OPERATOR,
    "POST /jobs/{id}/clone/preview": Role.OPERATOR,
    "POST /jobs/{id}/clone": Role.OPERATOR,
    "GET /actions": Role.OPERATOR,
    "POST /actions": Role.OPERATOR,
    "GET /failures": Role.VIEWER,
    "GET /batches": Role.VIEWER,
    "GET /workflows": Role.VIEWER,
    "GET /flows/{id}": Role.VIEWER,
    "POST /flows/{id}/cancel": Role.OPERATOR,
    "POST /flows/{id}/retry": Role.OPERATOR,
    "POST /flows/{id}/seal": Role.OPERATOR,
    "GET /queues": Role.VIEWER,
    "GET /queues/{name}": Role.VIEWER,
    "POST /queues/{name}/pause": Role.OPERATOR,
    "POST /queues/{name}/resume": Role.OPERATOR,
    "POST /queues/{name}/weight": Role.ADMIN,
    "POST /queues/{name}/limit": Role.ADMIN,
    "POST /all-queues/pause": Role.OPERATOR,
    "POST /all-queues/resume": Role.OPERATOR,
    "GET /lanes": Role.VIEWER,
    "GET /lanes/{target}": Role.VIEWER,
    "POST /lane/pause/{target}": Role.OPERATOR,
    "POST /lane/resume/{target}": Role.OPERATOR,
    "GET /limits": Role.VIEWER,
    "POST /limits/all": Role.ADMIN,
    "POST /limits/key": Role.ADMIN,
    "GET /tasks": Role.VIEWER,
    "GET /tasks/{name}": Role.VIEWER,
    "POST /tasks/{name}/enqueue": Role.OPERATOR,
    "GET /workers": Role.VIEWER,
    "GET /workers/{owner}": Role.VIEWER,
    "GET /schedules": Role.VIEWER,
    "GET /schedules/{name}": Role.VIEWER,
    "POST /schedules/{name}/pause": Role.OPERATOR,
    "POST /schedules/{name}/resume": Role.OPERATOR,
    "POST /schedules/{name}/run": Role.OPERATOR,
    "POST /schedules/{name}/drop": Role.OPERATOR,
    "GET /events": Role.VIEWER,
    "GET /bulk": Role.VIEWER,
    "GET /bulk/{id}": Role.VIEWER,
    "POST /bulk/{id}/stop": Role.OPERATOR,
    "POST /bulk/{id}/resume": Role.OPERATOR,
    "GET /tenants": Role.VIEWER,
    "POST /tenants/{tenant}/pause": Role.OPERATOR,
    "POST /tenants/{tenant}/resume": Role.OPERATOR,
    "POST /tenants/{tenant}/weight": Role.ADMIN,
    "GET /system": Role.ADMIN,
    "POST /system/sessions/end": Role.ADMIN,
    "GET /audit": Role.OPERATOR,
    "GET /live": Role.VIEWER,
    "POST /demo/kill": Role.ADMIN,
}
#: Routes about all tenants: refused to a caller of one tenant, and under the path of one.
NOT_FOR_TENANTS = {
    "POST /tenants/{tenant}/pause",
    "POST /tenants/{tenant}/resume",
    "POST /tenants/{tenant}/weight",
    "GET /system",
    "POST /system/sessions/end",
}
AT = pytest.mark.parametrize("at", ["", "/queue"])
#: An open stream has no end, and a sign-out leads to the sign-in: both have tests of their own.
PAGES = [
    route
    for route in TABLE
    if route.role is not Role.ANYONE and route.media != STREAM and route.at != "/logout"
]


def path_of(route: Route) -> str:
    return route.at.format(id=1, name="default", target="t", tenant="ours", owner="w")


def request(visitor: Visitor, route: Route, token: str, prefix: str = "") -> httpx.Response:
    """A page is requested twice, also as the fragment that an open page loads again."""
    path = prefix + path_of(route)
    if route.method == "POST":
        return visitor.request("POST", path, data={"form_token": token})
    whole, part = visitor.get(path), visitor.get(path, headers=PART)
    assert met(whole) == met(part), path
    return whole


def met(response: httpx.Response) -> str | int:
    if response.status_code == 303 and "/login" in response.headers["location"]:
        return SIGN_IN
    if response.status_code == 401 and "hx-refresh" in response.headers:
        return SIGN_IN
    is_refused = response.status_code == 403 or response.status_code >= 500
    return response.status_code if is_refused else ADMITTED


def expected(role: str | None, *, in_tenant: bool) -> dict[str, str | int]:
    found = {route.name: EXPECTED[role][route.role] for route in PAGES}
    is_of_tenant = in_tenant or (role is not None and "@" in role)
    if is_of_tenant:
        found |= {name: 403 for name in NOT_FOR_TENANTS if found[name] != SIGN_IN}
    return found


def test_the_pages_have_the_listed_roles() -> None:
    assert {route.name: route.role for route in TABLE} == ROLES


def test_nothing_is_served_but_the_pages_of_the_table(sqlite_board: BrowserClient) -> None:
    found = set()
    for route in dashboard(sqlite_board.app, settings_with(sqlite_board.folder)).routes:
        assert isinstance(route, StarletteRoute)
        path = route.path.replace(":path}", "}")
        found |= {f"{method} {path}" for method in (route.methods or set()) - {"HEAD"}}
    of_tenants = {
        f"{route.method} /t/{{of_tenant}}{route.at}"
        for route in TABLE
        if route.role is not Role.ANYONE
    }
    assert found == ROLES.keys() | of_tenants


@AT
@pytest.mark.parametrize("role", EXPECTED)
def test_every_page_of_a_tenant_admits_the_right_callers(
    sqlite_board: BrowserClient, tokens: list[str], role: str | None, at: str
) -> None:
    """The tenant is named by the path, for callers of all tenants too."""
    sqlite_board.app.tenants.create("ours")
    sqlite_board.open(settings_with(sqlite_board.folder, *tokens), at=at)
    visitor = sqlite_board.visitor(role)
    token = "" if role is None else visitor.form_token("/t/ours/help" if "@" in role else "/help")
    if role == "admin@other":
        token = "no page shows one"
    found = {route.name: met(request(visitor, route, token, prefix="/t/ours")) for route in PAGES}
    assert found == expected(role, in_tenant=True)


@AT
@pytest.mark.parametrize("role", EXPECTED)
def test_every_page_admits_the_right_callers(
    sqlite_board: BrowserClient, tokens: list[str], role: str | None, at: str
) -> None:
    """Without a tenant in the path a caller of one tenant is at its own."""
    for name in ("ours", "other"):
        sqlite_board.app.tenants.create(name)
    sqlite_board.open(settings_with(sqlite_board.folder, *tokens), at=at)
    visitor = sqlite_board.visitor(role)
    token = visitor.form_token() if role is not None else ""
    found = {route.name: met(request(visitor, route, token)) for route in PAGES}
    wanted = expected("admin@ours" if role == "admin@other" else role, in_tenant=False)
    assert found == wanted


def test_every_page_and_form_is_handled_on_postgresql(
    postgres_board: BrowserClient, tokens: list[str]
) -> None:
    postgres_board.app.tenants.create("ours")
    postgres_board.open(settings_with(postgres_board.folder, *tokens))
    visitor = postgres_board.visitor("admin")
    token = visitor.form_token()
    found = {route.name: met(request(visitor, route, token)) for route in PAGES}
    assert found == expected("admin", in_tenant=False)


def targets(page: str) -> set[tuple[str, str]]:
    """Where the links and forms of a page lead: method and path."""
    found = {("GET", unescape(path)) for path in re.findall(r'<a [^>]*href="([^"#]+)"', page)}
    for form in re.findall(r"<form [^>]*action=[^>]*>|<button [^>]*formaction=[^>]*>", page):
        method = "POST" if 'method="post"' in form or "<button" in form else "GET"
        found |= {(method, unescape(path)) for path in re.findall(r'action="([^"]+)"', form)}
    return found


@pytest.mark.parametrize("role", ["viewer", "operator", "admin@ours"])
def test_pages_have_no_link_or_form_that_is_refused_to_their_visitor(
    secured: BrowserClient, role: str
) -> None:
    """A form is sent empty: it is refused for the role before it is read."""
    secured.app.tenants.create("ours")
    app = secured.app.tenant("ours") if "@" in role else secured.app
    fill(app)
    flow_id = workflow(app)
    app.operator.put_schedule("nightly", Every(seconds=3600.0), NewJob(task="greet"), by="ann")
    if app is secured.app:
        secured.work()
    visitor, found = secured.visitor(role), set()
    jobs = [f"/jobs/{job.id}" for job in app.operator.jobs(JobFilter()).jobs]
    for path in (*SHOWN, *jobs, f"/flows/{flow_id}", "/schedules/nightly"):
        page = visitor.get(path)
        if page.status_code != 403:  # which the tables above expect
            found |= targets(page.text)
    assert len(found) > 50
    assert [each for each in found if visitor.request(*each).status_code == 403] == []


@pytest.mark.parametrize("role", EXPECTED)
def test_the_stream_of_changes_admits_the_right_callers(
    secured: BrowserClient, role: str | None
) -> None:
    for name in ("ours", "other"):
        secured.app.tenants.create(name)
    secured.board.service.closing = True  # so that a stream ends after its first message
    visitor = secured.visitor(role)
    found = [met(visitor.get(f"{at}/live?topics=jobs,job-1")) for at in ("", "/t/ours")]
    own = EXPECTED[role][Role.VIEWER]
    assert found == [SIGN_IN if role is None else ADMITTED, own]
    tenants = {None if role is None or "@" not in role else role.partition("@")[2]}
    tenants |= {"ours"} if own is ADMITTED else set()
    assert set(secured.board.watchers) == (set() if role is None else tenants)


def test_a_page_of_an_unknown_tenant_does_not_exist(secured: BrowserClient) -> None:
    for path in ("/t/nobody/jobs", "/t/nobody/help", "/t/nobody/live?topics=jobs"):
        assert secured.visitor("admin").get(path).status_code == 404
    assert secured.app._tenant_apps == {}
    assert secured.board.watchers == {}
    assert secured.visitor("admin@ours").get("/t/other/jobs").status_code == 403


def test_a_tenants_pages_show_no_other_tenants_jobs(secured: BrowserClient) -> None:
    for name in ("ours", "other"):
        secured.app.tenants.create(name)
        secured.app.tenant(name).operator.pause_queue(f"queue-of-{name}", by="ann")
    pages = [secured.visitor("admin").page("/t/ours/queues")]
    pages.append(secured.visitor("admin@ours").page("/queues"))
    for page in pages:
        assert "queue-of-ours" in page
        assert "queue-of-other" not in page
    listed = secured.visitor("admin@ours").page("/tenants")
    assert "/t/ours/" in listed
    assert "/t/other/" not in listed


@pytest.mark.parametrize(
    ("caller", "status"),
    [
        (None, 403),
        (Caller("ann", Role.VIEWER), 200),
        (Caller("ann", Role.OPERATOR, "ours"), 200),
        (Caller("ann", Role.ADMIN, "other"), 403),
    ],
)
def test_an_application_decides_who_its_visitors_are(
    sqlite_board: BrowserClient, caller: Caller | None, status: int
) -> None:
    sqlite_board.app.tenants.create("ours")

    async def identify(request: object) -> Caller | None:
        return caller

    for who in (identify, lambda request: caller):
        sqlite_board.open(settings_with(sqlite_board.folder), tenant="ours", identify=who)
        visitor = sqlite_board.visitor()
        assert visitor.get("/jobs").status_code == status
        changed = visitor.post("/queues/mail/pause", {"reason": "x"}).status_code
        assert changed == (303 if caller and caller.may(Role.OPERATOR, "ours") else 403)


@pytest.mark.parametrize(
    "request_",
    [
        {"headers": {"X-Forwarded-For": "10.1.2.3"}},
        {"headers": {"Sec-Fetch-Site": "cross-site"}},
        {"headers": {"Origin": "http://evil.example"}},
        {"headers": {"Host": "evil.example"}},
    ],
    ids=str,
)
def test_with_local_access_only_this_machine_is_served(
    sqlite_board: BrowserClient, request_: dict[str, Any]
) -> None:
    visitor = sqlite_board.visitor()
    assert visitor.get("/jobs").status_code == 200
    assert visitor.get("/jobs", **request_).status_code == 403
    assert sqlite_board.visitor(peer="10.1.2.3").get("/jobs").status_code == 403
