"""Authorization: every route for every kind of caller, and attacks through browsers."""

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
from freehold.settings import load
from tests.http.api_client import TOKENS, ApiClient, bearer, problem, settings_with

SHORT_STREAMS = RequestLimits(stream_seconds=0.0)
ADMITTED = "admitted"
#: The status for each kind of caller, by the role of a route.
EXPECTED: dict[str, dict[Role, int | str]] = {
    "no token": {Role.ANYONE: ADMITTED, Role.VIEWER: 401, Role.OPERATOR: 401, Role.ADMIN: 401},
    "wrong": {Role.ANYONE: ADMITTED, Role.VIEWER: 401, Role.OPERATOR: 401, Role.ADMIN: 401},
    "viewer": {Role.ANYONE: ADMITTED, Role.VIEWER: ADMITTED, Role.OPERATOR: 403, Role.ADMIN: 403},
    "operator": {
        Role.ANYONE: ADMITTED,
        Role.VIEWER: ADMITTED,
        Role.OPERATOR: ADMITTED,
        Role.ADMIN: 403,
    },
    "admin": {
        Role.ANYONE: ADMITTED,
        Role.VIEWER: ADMITTED,
        Role.OPERATOR: ADMITTED,
        Role.ADMIN: ADMITTED,
    },
    "admin@other": {Role.ANYONE: ADMITTED, Role.VIEWER: 403, Role.OPERATOR: 403, Role.ADMIN: 403},
    "admin@ours": {
        Role.ANYONE: ADMITTED,
        Role.VIEWER: ADMITTED,
        Role.OPERATOR: ADMITTED,
        Role.ADMIN: ADMITTED,
    },
}
#: The roles of the API, repeated: a new route must be added here, deliberately.
ROLES = {
    "GET /livez": Role.ANYONE,
    "GET /readyz": Role.ANYONE,
    "GET /metrics": Role.VIEWER,
    "GET /api/openapi.json": Role.VIEWER,
    "GET /api/jobs": Role.VIEWER,
    "GET /api/jobs/{id}": Role.VIEWER,
    "GET /api/jobs/{id}/explain": Role.VIEWER,
    "POST /api/jobs/{id}/amend": Role.OPERATOR,
    "POST /api/jobs/{id}/clone": Role.OPERATOR,
    "GET /api/jobs/explain": Role.VIEWER,
    "POST /api/jobs/preview": Role.OPERATOR,
    "GET /api/findings": Role.VIEWER,
    "GET /api/failures": Role.VIEWER,
    "GET /api/queues": Role.VIEWER,
    "GET /api/queues/{name}": Role.VIEWER,
    "GET /api/stats": Role.VIEWER,
    "GET /api/lanes": Role.VIEWER,
    "GET /api/lanes/{target}": Role.VIEWER,
    "GET /api/lane-jobs/{target}": Role.VIEWER,
    "GET /api/attempts": Role.VIEWER,
    "GET /api/limits": Role.VIEWER,
    "GET /api/workers": Role.VIEWER,
    "GET /api/audit": Role.OPERATOR,
    "GET /api/schedules": Role.VIEWER,
    "GET /api/schedules/{name}": Role.VIEWER,
    "GET /api/schedules/{name}/next": Role.VIEWER,
    "POST /api/schedules/{name}": Role.OPERATOR,
    "POST /api/schedules/{name}/pause": Role.OPERATOR,
    "POST /api/schedules/{name}/resume": Role.OPERATOR,
    "POST /api/schedules/{name}/run": Role.OPERATOR,
    "POST /api/schedules/{name}/backfill": Role.OPERATOR,
    "POST /api/schedules/{name}/reset": Role.OPERATOR,
    "POST /api/schedules/{name}/drop": Role.OPERATOR,
    "GET /api/signals": Role.VIEWER,
    "POST /api/signals": Role.OPERATOR,
    "GET /api/flows": Role.VIEWER,
    "GET /api/flows/{id}": Role.VIEWER,
    "GET /api/flows/{id}/nodes": Role.VIEWER,
    "GET /api/flows/{id}/members": Role.VIEWER,
    "POST /api/flows/{id}/cancel": Role.OPERATOR,
    "POST /api/flows/{id}/retry": Role.OPERATOR,
    "POST /api/flows/{id}/seal": Role.OPERATOR,
    "GET /api/retention": Role.VIEWER,
    "POST /api/retention/queues/{name}": Role.ADMIN,
    "POST /api/retention/tasks/{name}": Role.ADMIN,
    "GET /api/bulk": Role.VIEWER,
    "GET /api/bulk/{id}": Role.VIEWER,
    "POST /api/bulk": Role.OPERATOR,
    "POST /api/bulk/preview": Role.OPERATOR,
    "POST /api/bulk/{id}/stop": Role.OPERATOR,
    "POST /api/bulk/{id}/resume": Role.OPERATOR,
    "POST /api/jobs/{id}/delete": Role.ADMIN,
    "POST /api/lanes/{target}/pause": Role.OPERATOR,
    "POST /api/lanes/{target}/resume": Role.OPERATOR,
    "POST /api/limits/all": Role.ADMIN,
    "POST /api/limits/queues/{name}": Role.ADMIN,
    "POST /api/limits/keys/{key}": Role.ADMIN,
    "POST /api/queues/{name}/set_weight": Role.ADMIN,
    "GET /api/events": Role.VIEWER,
    "GET /api/jobs/{id}/events": Role.VIEWER,
    "GET /api/tenants": Role.VIEWER,
    "GET /api/tenants/{tenant}": Role.VIEWER,
    "POST /api/tenants": Role.ADMIN,
    "POST /api/tenants/{tenant}/pause": Role.OPERATOR,
    "POST /api/tenants/{tenant}/resume": Role.OPERATOR,
    "POST /api/tenants/{tenant}/set_weight": Role.ADMIN,
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

#: Routes about all tenants: refused to a token of one tenant, and by an API of one tenant.
NOT_FOR_TENANTS = {
    "POST /api/tenants",
    "POST /api/tenants/{tenant}/pause",
    "POST /api/tenants/{tenant}/resume",
    "POST /api/tenants/{tenant}/set_weight",
    "POST /api/tenants/{tenant}/drop",
}

#: Bodies of routes that do not accept an empty one.
BODIES: dict[str, dict[str, Any]] = {
    "/api/jobs": {"task": "greet"},
    "/api/queues/{name}/set_weight": {"weight": 2},
    "/api/tenants": {"name": "fresh"},
    "/api/tenants/{tenant}/set_weight": {"weight": 2},
    "/api/tenants/{tenant}/drop": {"name": "ours", "force": True},
}


def _request(client: ApiClient, route: Route, **request: Any) -> httpx.Response:
    path = route.at.format(id=1, name="default", target="t", key="k", tenant="ours")
    if route.body is not None:
        request.setdefault("json", BODIES.get(route.at, {}))
    return client.request(route.method, path, **request)


def _headers(caller: str) -> dict[str, str]:
    if caller == "no token":
        return {}
    if caller == "wrong":
        return {"Authorization": f"Bearer {TOKENS['admin'][:-1]}"}
    return bearer(caller)


def test_the_routes_have_the_listed_roles() -> None:
    assert {route.name: route.role for route in TABLE} == ROLES


@pytest.mark.parametrize(
    ("served", "caller"),
    [
        *(("ours", caller) for caller in EXPECTED),
        # As admin@other, test_tenants.py requests every route.
        *((None, caller) for caller in EXPECTED if caller != "admin@other"),
    ],
)
def test_every_route_admits_the_right_callers(
    client: ApiClient, tokens: list[str], served: str | None, caller: str
) -> None:
    client.app.tenants.create("ours")
    client.open(settings_with(client.folder, *tokens), SHORT_STREAMS, tenant=served)
    # A dropped tenant is not served: its route comes last.
    routes = sorted(TABLE, key=lambda route: route.at.endswith("/drop"))
    headers = _headers(caller)
    met = {route.name: _request(client, route, headers=headers).status_code for route in routes}
    refused = {name: status if status in (401, 403) else ADMITTED for name, status in met.items()}
    expected = {name: EXPECTED[caller][role] for name, role in ROLES.items()}
    if served is not None or caller == "admin@ours":
        expected |= {name: 403 for name in NOT_FOR_TENANTS if expected[name] != 401}
    assert refused == expected
    assert all(status < 500 for status in met.values()), met


@pytest.mark.parametrize("caller", ["admin", "admin@ours", "local"])
def test_the_api_of_one_tenant_shows_and_changes_no_other_tenant(
    client: ApiClient, tokens: list[str], caller: str
) -> None:
    """Whatever the token, and without tokens too."""
    for name in ("ours", "other"):
        client.app.tenants.create(name)
    texts = [] if caller == "local" else tokens
    headers = {} if caller == "local" else bearer(caller)
    client.open(settings_with(client.folder, *texts), tenant="ours")
    listed = client.get_json("/api/tenants", headers=headers)["tenants"]
    assert [each["name"] for each in listed] == ["ours"]
    assert client.get_json("/api/tenants/ours", headers=headers)["name"] == "ours"
    for name in ("other", "unknown"):  # the response does not show whether it exists
        response = client.get(f"/api/tenants/{name}", headers=headers)
        assert "of another tenant" in problem(response, 403, "forbidden")
    for name in ("ours", "other"):
        body = {"name": name, "force": True}
        response = client.post(f"/api/tenants/{name}/drop", body, headers=headers)
        assert "all tenants" in problem(response, 403, "forbidden")
    assert [each.name for each in client.app.tenants.all()] == ["other", "ours"]


@pytest.mark.requirement("N16")
def test_an_operator_cannot_delete_jobs_in_bulk(client: ApiClient, tokens: list[str]) -> None:
    job_id = client.add(queue="q")
    client.open(settings_with(client.folder, *tokens))
    body = {"verb": "delete", "filter": {"queue": "q"}}
    refused = client.post("/api/bulk", body, headers=bearer("operator"))
    assert "deleting jobs" in problem(refused, 403, "forbidden")
    assert client.get(f"/api/jobs/{job_id}", headers=bearer("viewer")).status_code == 200
    assert client.post("/api/bulk", body, headers=bearer("admin")).json()["done"] == 1


def test_a_refused_request_changes_nothing(client: ApiClient, tokens: list[str]) -> None:
    client.app.tenants.create("ours")
    client.open(settings_with(client.folder, *tokens), SHORT_STREAMS, tenant="ours")
    body = {"task": "greet", "args": {"name": "x"}}
    for headers in ({}, bearer("viewer"), bearer("admin@other")):
        assert client.post("/api/jobs", body, headers=headers).status_code in (401, 403)
    assert client.get_json("/api/jobs", headers=bearer("viewer"))["jobs"] == []


def test_a_request_without_a_token_gets_instructions(
    sqlite_client: ApiClient, tokens: list[str]
) -> None:
    sqlite_client.open(settings_with(sqlite_client.folder, *tokens))
    response = sqlite_client.get("/api/stats")
    assert "Authorization: Bearer" in problem(response, 401, "unauthorized")
    assert response.headers["www-authenticate"].startswith("Bearer")


def test_a_token_works_from_anywhere(sqlite_client: ApiClient, tokens: list[str]) -> None:
    sqlite_client.open(settings_with(sqlite_client.folder, *tokens))
    response = sqlite_client.get(
        "/api/stats", headers=bearer("viewer"), host="queue.example", peer=("10.1.2.3", 9)
    )
    assert response.status_code == 200


def test_a_route_without_a_role_cannot_be_registered() -> None:
    routes = Routes()
    with pytest.raises(TypeError, match="name the role that it needs"):

        @routes.get("/open", None, responses={200: str})  # type: ignore[arg-type]
        async def open_route(request: object) -> str:
            return ""

    assert list(routes) == []


# -- without configured tokens ---------------------------------------------------------------


def test_without_configured_tokens_callers_need_the_token_of_a_private_file(
    sqlite_client: ApiClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(sqlite_client.folder))
    sqlite_client.folder.chmod(0o700)
    caplog.set_level("INFO")
    sqlite_client.open(load(environment={}, folder=sqlite_client.folder))
    file = sqlite_client.folder / "freehold" / "api-token"
    token = file.read_text().strip()
    assert file.stat().st_mode & 0o777 == 0o600
    assert str(file) in caplog.text
    assert token not in caplog.text
    assert sqlite_client.get("/api/stats").status_code == 401
    headers = {"Authorization": f"Bearer {token}"}
    assert sqlite_client.post("/api/tenants", {"name": "a"}, headers=headers).status_code == 201


# -- with local access -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_",
    [
        {"peer": ("10.1.2.3", 9)},
        {"host": "evil.example"},
        {"headers": {"Host": "["}},
        {"host": "localhost.evil.example"},
        {"headers": {"Origin": "http://evil.example"}},
        {"headers": {"Origin": "null"}},
        {"headers": {"Sec-Fetch-Site": "cross-site"}},
        {"headers": {"X-Forwarded-For": "127.0.0.1"}},
        {"headers": {"Forwarded": "for=127.0.0.1"}},
        {"headers": {"Via": "1.1 gateway"}},
        {"headers": {"X-Forwarded-Proto": "https"}},
        {"headers": {"CF-Connecting-IP": "10.1.2.3"}},
        {"headers": {"True-Client-IP": "10.1.2.3"}},
        {"headers": {"X-Client-IP": "10.1.2.3"}},
        {"headers": {"X-Envoy-External-Address": "10.1.2.3"}},
        {"headers": {"X-Original-URL": "/api/jobs"}},
    ],
    ids=str,
)
def test_with_local_access_only_this_machine_is_served(
    sqlite_client: ApiClient, request_: dict[str, Any]
) -> None:
    for route in TABLE:
        if route.role is not Role.ANYONE:
            assert _request(sqlite_client, route, **request_).status_code == 403, route.name
    assert sqlite_client.get_json("/api/jobs")["jobs"] == []


@pytest.mark.parametrize("host", ["localhost:8787", "127.0.0.1:8787", "[::1]:8787"])
def test_this_machine_is_served_with_local_access(sqlite_client: ApiClient, host: str) -> None:
    assert sqlite_client.get("/api/stats", host=host).status_code == 200


@pytest.mark.parametrize(
    "content_type", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
def test_a_form_of_another_page_changes_nothing(
    sqlite_client: ApiClient, content_type: str | None
) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    for route in TABLE:
        if route.method == "POST":
            response = _request(sqlite_client, route, json=None, content=b"{}", headers=headers)
            problem(response, 415, "unsupported-media-type")


# -- everywhere ------------------------------------------------------------------------------


def test_responses_forbid_caching_framing_and_sniffing(sqlite_client: ApiClient) -> None:
    for path in ("/api/jobs", "/api/jobs/1", "/metrics", "/livez"):
        headers = sqlite_client.get(path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers


def test_a_wrong_path_or_method_gets_an_error_response(sqlite_client: ApiClient) -> None:
    assert "openapi" in problem(sqlite_client.get("/nothing"), 404, "not-found")
    response = sqlite_client.request("DELETE", "/api/jobs")
    problem(response, 405, "method-not-allowed")
    assert set(response.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}


def test_it_can_be_mounted_into_another_application(client: ApiClient, tokens: list[str]) -> None:
    client.open(settings_with(client.folder, *tokens))
    outer = Starlette(routes=[Mount("/queue", app=client.api)])
    admin = bearer("admin")
    made = client.post(
        "/queue/api/jobs", {"task": "greet", "args": {"name": "x"}}, to=outer, headers=admin
    )
    assert made.status_code == 201
    assert client.get("/queue/api/jobs", to=outer).status_code == 401
    described = client.get_json("/queue/api/openapi.json", to=outer, headers=admin)
    assert described["servers"] == [{"url": "/queue"}]
    detail = problem(client.get("/queue/nothing", to=outer), 404, "not-found")
    assert detail == "there is no such path; see /queue/api/openapi.json"
    detail = problem(client.get("/nothing"), 404, "not-found")
    assert detail == "there is no such path; see /api/openapi.json"
