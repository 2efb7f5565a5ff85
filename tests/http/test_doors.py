"""Who is let in: every route by every kind of caller, and what browsers could be talked into."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from freehold.http.asgi import TABLE
from freehold.http.request_limits import RequestLimits
from freehold.http.routes import Route, Routes
from freehold.http_auth import Role
from tests.http.desk import TOKENS, Desk, bearer, problem, settings_with

QUICK = RequestLimits(stream_seconds=0.0)
IN = "let in"
#: What each kind of caller gets, by the role that a route declares.
WALK: dict[str, dict[Role, int | str]] = {
    "no token": {Role.ANYONE: IN, Role.VIEWER: 401, Role.OPERATOR: 401, Role.ADMIN: 401},
    "wrong": {Role.ANYONE: IN, Role.VIEWER: 401, Role.OPERATOR: 401, Role.ADMIN: 401},
    "viewer": {Role.ANYONE: IN, Role.VIEWER: IN, Role.OPERATOR: 403, Role.ADMIN: 403},
    "operator": {Role.ANYONE: IN, Role.VIEWER: IN, Role.OPERATOR: IN, Role.ADMIN: 403},
    "admin": {Role.ANYONE: IN, Role.VIEWER: IN, Role.OPERATOR: IN, Role.ADMIN: IN},
    "admin@other": {Role.ANYONE: IN, Role.VIEWER: 403, Role.OPERATOR: 403, Role.ADMIN: 403},
    "admin@ours": {Role.ANYONE: IN, Role.VIEWER: IN, Role.OPERATOR: IN, Role.ADMIN: IN},
}
#: The table of the API, said once more: a route that is new here was thought about.
ROLES = {
    "GET /livez": Role.ANYONE,
    "GET /readyz": Role.ANYONE,
    "GET /metrics": Role.VIEWER,
    "GET /api/openapi.json": Role.VIEWER,
    "GET /api/jobs": Role.VIEWER,
    "GET /api/jobs/{id}": Role.VIEWER,
    "GET /api/jobs/{id}/explain": Role.VIEWER,
    "GET /api/queues": Role.VIEWER,
    "GET /api/stats": Role.VIEWER,
    "GET /api/lanes": Role.VIEWER,
    "GET /api/limits": Role.VIEWER,
    "GET /api/workers": Role.VIEWER,
    "POST /api/lanes/{target}/pause": Role.OPERATOR,
    "POST /api/lanes/{target}/resume": Role.OPERATOR,
    "POST /api/limits/all": Role.ADMIN,
    "POST /api/limits/queues/{name}": Role.ADMIN,
    "POST /api/limits/keys/{key}": Role.ADMIN,
    "POST /api/queues/{name}/weigh": Role.ADMIN,
    "GET /api/events": Role.VIEWER,
    "GET /api/tenants": Role.VIEWER,
    "GET /api/tenants/{tenant}": Role.VIEWER,
    "POST /api/tenants": Role.ADMIN,
    "POST /api/tenants/{tenant}/pause": Role.OPERATOR,
    "POST /api/tenants/{tenant}/resume": Role.OPERATOR,
    "POST /api/tenants/{tenant}/weigh": Role.ADMIN,
    "POST /api/tenants/{tenant}/drop": Role.ADMIN,
    "POST /api/jobs": Role.OPERATOR,
    "POST /api/jobs/{id}/cancel": Role.OPERATOR,
    "POST /api/jobs/{id}/pause": Role.OPERATOR,
    "POST /api/jobs/{id}/resume": Role.OPERATOR,
    "POST /api/jobs/{id}/retry": Role.OPERATOR,
    "POST /api/jobs/{id}/submit": Role.OPERATOR,
    "POST /api/queues/{name}/pause": Role.OPERATOR,
    "POST /api/queues/{name}/resume": Role.OPERATOR,
    "POST /targets/{target}/jobs/{id}/resume/": Role.OPERATOR,
}

#: Also an admin of one tenant only may not.
LANDLORDS = {
    "POST /api/tenants",
    "POST /api/tenants/{tenant}/pause",
    "POST /api/tenants/{tenant}/resume",
    "POST /api/tenants/{tenant}/weigh",
    "POST /api/tenants/{tenant}/drop",
}

#: Where an empty body says too little.
BODIES: dict[str, dict[str, Any]] = {
    "/api/jobs": {"task": "greet"},
    "/api/queues/{name}/weigh": {"weight": 2},
    "/api/tenants": {"name": "fresh"},
    "/api/tenants/{tenant}/weigh": {"weight": 2},
    "/api/tenants/{tenant}/drop": {"name": "ours", "force": True},
}


def _ask(desk: Desk, route: Route, **request: Any) -> httpx.Response:
    path = route.at.format(id=1, name="default", target="t", key="k", tenant="ours")
    if route.body is not None:
        request.setdefault("json", BODIES.get(route.at, {}))
    return desk.ask(route.method, path, **request)


def _headers(caller: str) -> dict[str, str]:
    if caller == "no token":
        return {}
    if caller == "wrong":
        return {"Authorization": f"Bearer {TOKENS['admin'][:-1]}"}
    return bearer(caller)


def test_the_table_is_the_one_that_was_thought_about() -> None:
    assert {route.name: route.role for route in TABLE} == ROLES


@pytest.mark.parametrize("caller", WALK)
def test_a_walk_over_all_routes(desk: Desk, tokens: list[str], caller: str) -> None:
    desk.app.tenants.create("ours")
    desk.open(settings_with(desk.folder, *tokens), QUICK, tenant="ours")
    last = [route for route in TABLE if route.at.endswith("/drop")]  # what is dropped is not served
    way = [*(route for route in TABLE if route not in last), *last]
    met = {route.name: _ask(desk, route, headers=_headers(caller)).status_code for route in way}
    refused = {name: status if status in (401, 403) else IN for name, status in met.items()}
    expected = {name: WALK[caller][role] for name, role in ROLES.items()}
    if caller == "admin@ours":
        expected |= dict.fromkeys(LANDLORDS, 403)
    assert refused == expected
    assert all(status < 500 for status in met.values()), met


def test_a_refused_caller_has_changed_nothing(desk: Desk, tokens: list[str]) -> None:
    desk.app.tenants.create("ours")
    desk.open(settings_with(desk.folder, *tokens), QUICK, tenant="ours")
    body = {"task": "greet", "args": {"name": "x"}}
    for headers in ({}, bearer("viewer"), bearer("admin@other")):
        assert desk.post("/api/jobs", body, headers=headers).status_code in (401, 403)
    assert desk.told("/api/jobs", headers=bearer("viewer"))["jobs"] == []


def test_whoever_is_nobody_is_told_how_to_be_somebody(sqlite_desk: Desk, tokens: list[str]) -> None:
    sqlite_desk.open(settings_with(sqlite_desk.folder, *tokens))
    answer = sqlite_desk.get("/api/stats")
    assert "Authorization: Bearer" in problem(answer, 401, "unauthorized")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_token_works_from_anywhere(sqlite_desk: Desk, tokens: list[str]) -> None:
    sqlite_desk.open(settings_with(sqlite_desk.folder, *tokens))
    answer = sqlite_desk.get(
        "/api/stats", headers=bearer("viewer"), host="queue.example", client=("10.1.2.3", 9)
    )
    assert answer.status_code == 200


def test_a_route_without_a_role_cannot_be_registered() -> None:
    routes = Routes()
    with pytest.raises(TypeError, match="say which role may ask"):

        @routes.get("/open", None, answers={200: str})  # type: ignore[arg-type]
        async def opened(asked: object) -> str:
            return ""

    assert list(routes) == []


# -- without tokens --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_",
    [
        {"client": ("10.1.2.3", 9)},
        {"host": "evil.example"},
        {"headers": {"Host": "["}},
        {"host": "localhost.evil.example"},
        {"headers": {"Origin": "http://evil.example"}},
        {"headers": {"Origin": "null"}},
        {"headers": {"Sec-Fetch-Site": "cross-site"}},
        {"headers": {"X-Forwarded-For": "127.0.0.1"}},
        {"headers": {"Forwarded": "for=127.0.0.1"}},
    ],
    ids=str,
)
def test_without_tokens_only_this_machine_is_served(
    sqlite_desk: Desk, request_: dict[str, Any]
) -> None:
    for route in TABLE:
        if route.role is not Role.ANYONE:
            assert _ask(sqlite_desk, route, **request_).status_code == 403, route.name
    assert sqlite_desk.told("/api/jobs")["jobs"] == []


@pytest.mark.parametrize("host", ["localhost:8787", "127.0.0.1:8787", "[::1]:8787"])
def test_this_machine_is_served_without_tokens(sqlite_desk: Desk, host: str) -> None:
    assert sqlite_desk.get("/api/stats", host=host).status_code == 200


@pytest.mark.parametrize(
    "content_type", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
def test_a_form_of_another_page_changes_nothing(
    sqlite_desk: Desk, content_type: str | None
) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    for route in TABLE:
        if route.method == "POST":
            answer = _ask(sqlite_desk, route, json=None, content=b"{}", headers=headers)
            problem(answer, 415, "unsupported-media-type")


# -- everywhere ------------------------------------------------------------------------------


def test_no_answer_is_kept_framed_or_guessed_at(sqlite_desk: Desk) -> None:
    for path in ("/api/jobs", "/api/jobs/1", "/metrics", "/livez"):
        headers = sqlite_desk.get(path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers


def test_a_wrong_path_or_method_is_a_problem_too(sqlite_desk: Desk) -> None:
    assert "openapi" in problem(sqlite_desk.get("/nothing"), 404, "not-found")
    answer = sqlite_desk.ask("DELETE", "/api/jobs")
    problem(answer, 405, "method-not-allowed")
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}


def test_it_can_be_mounted_into_another_application(desk: Desk, tokens: list[str]) -> None:
    desk.open(settings_with(desk.folder, *tokens))
    outer = Starlette(routes=[Mount("/queue", app=desk.api)])
    admin = bearer("admin")
    made = desk.post(
        "/queue/api/jobs", {"task": "greet", "args": {"name": "x"}}, to=outer, headers=admin
    )
    assert made.status_code == 201
    assert desk.get("/queue/api/jobs", to=outer).status_code == 401
    described = desk.told("/queue/api/openapi.json", to=outer, headers=admin)
    assert described["servers"] == [{"url": "/queue"}]
