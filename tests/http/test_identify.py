"""The API under the authentication of the application that it is mounted into."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from starlette.requests import Request

from freehold.http import Caller, Role, api
from freehold.http.asgi import TABLE
from tests.http.api_client import ApiClient, problem
from tests.http.test_authorization import (
    ADMITTED,
    EXPECTED,
    NOT_FOR_TENANTS,
    ROLES,
    SHORT_STREAMS,
    _request,
)

pytestmark = pytest.mark.requirement("N19")
CALLERS: dict[str, Caller | None] = {
    "no token": None,
    "viewer": Caller("ann", Role.VIEWER),
    "operator": Caller("ann", Role.OPERATOR),
    "admin": Caller("ann", Role.ADMIN),
    "admin@ours": Caller("ann", Role.ADMIN, "ours"),
    "admin@other": Caller("ann", Role.ADMIN, "other"),
}


@pytest.mark.parametrize("served", [None, "ours"])
@pytest.mark.parametrize("caller", CALLERS)
def test_every_route_admits_the_caller_that_the_application_names(
    sqlite_client: ApiClient, served: str | None, caller: str
) -> None:
    client = sqlite_client
    for name in ("ours", "other"):
        client.app.tenants.create(name)
    app = client.app if served is None else client.app.tenant(served)

    async def identify(request: Request) -> Caller | None:
        return CALLERS[caller]

    client.api = api(app, limits=SHORT_STREAMS, identify=identify)
    routes = sorted(TABLE, key=lambda route: route.at.endswith("/drop"))
    met = {route.name: _request(client, route).status_code for route in routes}
    refused = {name: status if status in (401, 403) else ADMITTED for name, status in met.items()}
    expected = {name: EXPECTED[caller][role] for name, role in ROLES.items()}
    if served is None and caller == "admin@other":  # its own data, of its own tenant
        is_named = {route.name for route in TABLE if "{tenant}" in route.at}
        expected = {
            name: 403 if name in is_named | NOT_FOR_TENANTS else ADMITTED for name in expected
        }
    elif served is not None or caller == "admin@ours":
        expected |= {name: 403 for name in NOT_FOR_TENANTS if expected[name] != 401}
    assert refused == expected


def test_a_change_has_the_name_of_the_caller_and_a_cookie_serves_no_other_site(
    sqlite_client: ApiClient,
) -> None:
    client = sqlite_client
    job_id = client.add()

    def identify(request: Request) -> Caller | None:
        return CALLERS["operator"] if request.cookies.get("session") == "s1" else None

    client.api = api(client.app, identify=identify)
    path, cookie = f"/api/jobs/{job_id}/pause", {"Cookie": "session=s1"}
    problem(client.post(path, {}), 401, "unauthorized")
    for site in ("cross-site", "same-site"):
        refused = client.post(path, {}, headers={**cookie, "Sec-Fetch-Site": site})
        assert "other sites" in problem(refused, 403, "forbidden")
    done = client.post(path, {}, headers={**cookie, "Sec-Fetch-Site": "same-origin"})
    assert done.status_code == 200
    timeline = client.get_json(f"/api/jobs/{job_id}", headers=cookie)["timeline"]
    assert timeline[-1]["by"] == "ann"


@pytest.mark.parametrize("returned", ["admin", Role.ADMIN, True])
def test_anything_but_a_caller_admits_nobody(sqlite_client: ApiClient, returned: Any) -> None:
    sqlite_client.api = api(sqlite_client.app, identify=lambda request: returned)
    response: httpx.Response = sqlite_client.get("/api/jobs")
    assert response.status_code == 500
    assert "jobs" not in response.json()
