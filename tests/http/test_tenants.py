"""Tenants over HTTP: managing them, and that none reaches another's data by any route."""

from __future__ import annotations

import re
from typing import Any

import pytest

from freehold.http.asgi import TABLE
from freehold.http.request_limits import RequestLimits
from freehold.model.job import NewJob
from freehold.model.limit import ALL_QUEUES, Limit
from freehold.model.operator_actions import OperatorVerb
from freehold.store.types import ClaimRequest, JobFilter, QueueDemand
from tests.http.api_client import ApiClient, bearer, problem, settings_with

SHORT_STREAMS = RequestLimits(stream_seconds=0.0)


# -- management ------------------------------------------------------------------------------


@pytest.mark.requirement("S4.2")
def test_a_tenant_is_created_paused_resumed_and_dropped(client: ApiClient) -> None:
    made = client.post("/api/tenants", {"name": "acme", "weight": 2, "max_slots": 5})
    assert made.status_code == 201
    assert (made.json()["shard"], made.json()["state"]) == ("home", "active")
    assert client.app.tenant("acme").operator.counts().ready == 0
    again = client.post("/api/tenants", {"name": "acme"})
    assert "tenant acme exists already" in problem(again, 409, "tenant-exists")

    body = {"reason": "unpaid", "by": "ann"}
    assert client.post("/api/tenants/acme/pause", body).json() == {"name": "acme", "status": "done"}
    (tenant,) = client.get_json("/api/tenants")["tenants"]
    assert (tenant["state"], tenant["note"]) == ("paused", "ann (local): unpaid")
    results = [client.post("/api/tenants/acme/resume").json()["status"] for _ in range(2)]
    assert results == ["done", "already"]

    client.post("/api/tenants/acme/set_weight", {"weight": 0.5})
    shown = client.get_json("/api/tenants/acme")
    assert (shown["weight"], shown["max_slots"], shown["note"]) == (0.5, None, None)

    dropped = client.post("/api/tenants/acme/drop", {"name": "acme"})
    assert dropped.json() == {"name": "acme", "status": "done"}
    assert client.get_json("/api/tenants")["tenants"] == []


def test_dropping_needs_the_name_again_and_refuses_live_jobs(client: ApiClient) -> None:
    client.post("/api/tenants", {"name": "acme"})
    acme = client.app.tenant("acme")
    acme._submit(client.app.tasks.get("greet").prepare("Ann"))
    problem(client.post("/api/tenants/acme/drop", {}), 422, "bad-input")
    wrong = client.post("/api/tenants/acme/drop", {"name": "acne", "force": True})
    assert "repeat its name" in problem(wrong, 422, "bad-input")
    live = client.post("/api/tenants/acme/drop", {"name": "acme"})
    assert "has live jobs or schedules:" in problem(live, 409, "refused")
    assert acme.operator.counts().ready == 1
    assert client.post("/api/tenants/acme/drop", {"name": "acme", "force": True}).status_code == 200
    problem(client.get("/api/tenants/acme"), 404, "tenant-not-found")


@pytest.mark.parametrize(
    ("path", "body", "slug"),
    [
        ("/api/tenants", {"name": "Acme"}, "bad-input"),
        ("/api/tenants", {"name": "beta", "weight": 0}, "bad-input"),
        ("/api/tenants", {"name": "beta", "shard": "west"}, "bad-settings"),
        ("/api/tenants/acme/pause", {"reason": "a\0b"}, "bad-input"),
        ("/api/tenants/acme/pause", {"by": "a\0b"}, "bad-name"),
    ],
)
def test_invalid_input_changes_nothing(
    client: ApiClient, path: str, body: dict[str, Any], slug: str
) -> None:
    client.post("/api/tenants", {"name": "acme"})
    before = client.get_json("/api/tenants")["tenants"]
    problem(client.post(path, body), 422, slug)
    assert client.get_json("/api/tenants")["tenants"] == before


# -- isolation -------------------------------------------------------------------------------


def _two_tenants(client: ApiClient, tokens: list[str]) -> None:
    """`ours` and `other`, each with its own jobs, lane, queue, limit and history; and the store of
    the directory, with jobs that belong to no tenant."""
    for name in ("ours", "other"):
        client.app.tenants.create(name)
        _furnish(client.app.tenant(name), name)
    _furnish(client.app, "directory")
    client.open(settings_with(client.folder, *tokens), SHORT_STREAMS)


def _share_a_limit(client: ApiClient) -> None:
    """A limit over all tenants, used up by jobs of `ours`, of no tenant, and of `other`. SQLite has
    no such limit: each tenant is a file of its own."""
    if client.app.url.startswith("postgresql:"):
        client.app.operator.set_queue_limit(ALL_QUEUES, Limit(4))
    for app, count in ((client.app.tenant("ours"), 2), (client.app, 1), (_other(client), 1)):
        app._client.store.enqueue([NewJob(task="greet", queue="shared")] * count)
        demands = (QueueDemand("shared", count),)
        request = ClaimRequest(owner="w", lease_seconds=600.0, demands=demands)
        assert len(app._client.store.claim(request)) == count


def _other(client: ApiClient) -> Any:
    return client.app.tenant("other")


def _furnish(app: Any, name: str) -> None:
    greet = app.tasks.get("greet").using(target=f"lane-of-{name}", queue=f"queue-of-{name}")
    for verb in (OperatorVerb.PAUSE, OperatorVerb.CANCEL):
        handle = app._submit(greet.prepare(f"secret-of-{name}"))
        act = getattr(app.operator, verb)
        act(handle.id, by=f"boss-of-{name}", reason=f"reason-of-{name}")
    app._submit(greet.prepare(f"secret-of-{name}"))
    app.operator.set_key_limit(f"limit-of-{name}", Limit(1))


@pytest.mark.requirement("S4.2")
def test_a_tenants_token_reaches_no_other_tenant_on_any_route(
    client: ApiClient, tokens: list[str]
) -> None:
    """Requests every route as an admin of one tenant, with the other's ids, lanes, queues and name:
    no response names the other, and nothing of the other has changed."""
    _two_tenants(client, tokens)
    _share_a_limit(client)
    before = {name: _state(client, name) for name in ("ours", "directory")}
    bodies: dict[str, Any] = {
        "/api/jobs": {"task": "greet", "args": {"name": "x"}, "target": "lane-of-ours"},
        "/api/queues/{name}/set_weight": {"weight": 2},
        "/api/tenants": {"name": "fresh"},
        "/api/tenants/{tenant}/set_weight": {"weight": 2},
        "/api/tenants/{tenant}/drop": {"name": "ours", "force": True},
    }
    queries = {
        "/api/jobs": "?args=true&state=paused&state=canceled",
        "/api/jobs/{id}": "?args=true&trace=true",
        "/api/events": "?after=0",
    }
    for route in TABLE:
        for job_id in (1, 2, 3):
            path = route.at.format(
                id=job_id, target="lane-of-ours", name="queue-of-ours", key="k", tenant="ours"
            )
            query = queries.get(route.at, "") if route.method == "GET" else ""
            sent = {} if route.body is None else {"json": bodies.get(route.at, {})}
            response = client.request(
                route.method, path + query, headers=bearer("admin@other"), **sent
            )
            assert "-of-directory" not in response.text, route.name
            shown = response.text.replace("lane-of-ours", "").replace("queue-of-ours", "")
            assert not re.search(r"\bours\b", shown), f"{route.name}: {response.text}"
            if route.at.startswith("/api/tenants/"):
                assert response.status_code == 403, route.name
    assert {name: _state(client, name) for name in ("ours", "directory")} == before


def test_a_tenants_token_reaches_its_own_data(client: ApiClient, tokens: list[str]) -> None:
    _two_tenants(client, tokens)
    headers = bearer("admin@other")
    for path, own in {
        "/api/jobs?args=true": "secret-of-other",
        "/api/jobs/1": "reason-of-other",
        "/api/queues": "queue-of-other",
        "/api/lanes": "lane-of-other",
        "/api/events?after=0": "boss-of-other",
        "/api/limits": "limit-of-other",
        "/metrics": "queue-of-other",
    }.items():
        response = client.get(path, headers=headers)
        assert response.status_code == 200, response.text
        assert own in response.text
    body = {"task": "greet", "args": {"name": "x"}}
    assert client.post("/api/jobs", body, headers=headers).status_code == 201
    assert len(_jobs(client.app.tenant("other"))) == 4


@pytest.mark.parametrize("by", ["token", "API"])
def test_of_a_shared_limit_one_tenant_sees_only_its_own_use(
    postgres_client: ApiClient, tokens: list[str], by: str
) -> None:
    client = postgres_client
    _two_tenants(client, tokens)
    _share_a_limit(client)
    full = client.get_json("/api/limits", headers=bearer("viewer"))["shared"]
    assert (full["leased"], len(full["tenants"])) == (4, 3)
    headers = bearer("admin@other")
    if by == "API":
        headers = bearer("viewer")
        client.open(settings_with(client.folder, *tokens), tenant="other")
    shared = client.get_json("/api/limits", headers=headers)["shared"]
    assert (shared["limit"]["max_leases"], shared["leased"]) == (4, 1)
    assert shared["tenants"] == [{"tenant": "other", "leased": 1}]
    causes = client.get_json("/api/jobs/3/explain", headers=headers)["causes"]
    (text,) = [each["text"] for each in causes if each["code"] == "limit_full"]
    reached = "the limit of all tenants is reached: 4 of 4 running"
    assert text == f"{reached}: 1 in this tenant, 3 in others"


def test_the_list_of_tenants_has_only_those_the_token_may_see(
    client: ApiClient, tokens: list[str]
) -> None:
    _two_tenants(client, tokens)

    def seen(role: str) -> list[str]:
        found = client.get_json("/api/tenants", headers=bearer(role))["tenants"]
        return [each["name"] for each in found]

    assert seen("viewer") == ["other", "ours"]
    assert (seen("admin@ours"), seen("admin@other")) == (["ours"], ["other"])
    assert client.get_json("/api/tenants/ours", headers=bearer("admin@ours"))["name"] == "ours"
    for name in ("other", "unknown"):  # the response does not show whether it exists
        response = client.get(f"/api/tenants/{name}", headers=bearer("admin@ours"))
        assert problem(response, 403, "forbidden") == "this token is of another tenant"


def test_a_token_of_a_dropped_tenant_reaches_nothing_and_shows_no_names(
    client: ApiClient, tokens: list[str]
) -> None:
    client.app.tenants.create("others")
    client.open(settings_with(client.folder, *tokens), SHORT_STREAMS)
    for path in ("/api/jobs", "/api/tenants/other", "/metrics"):
        response = client.get(path, headers=bearer("admin@other"))
        assert problem(response, 403, "forbidden") == "there is no tenant other"
    assert client.get_json("/api/tenants", headers=bearer("admin@other"))["tenants"] == []


def test_the_api_of_a_dropped_tenant_is_not_ready(client: ApiClient) -> None:
    client.app.tenants.create("others")
    client.open(settings_with(client.folder), tenant="other")
    for path in ("/readyz", "/api/queues"):
        response = client.get(path)
        assert "others" not in problem(response, 503, "schema-missing")


def _state(client: ApiClient, name: str) -> Any:
    """Everything that can be read of a tenant, or of the directory's own store."""
    app = client.app if name == "directory" else client.app.tenant(name)
    operator = app.operator
    jobs = _jobs(app)
    rows = [each for each in client.app.tenants.all() if each.name == name]
    return (
        jobs,
        operator.queues(),
        operator.lanes(),
        operator.queue_limits(),
        operator.key_limits(),
        operator.newest_event(),
        rows,
    )


def _jobs(app: Any) -> list[Any]:
    return list(app.operator.jobs(JobFilter()).jobs)


@pytest.mark.parametrize("fields", [{"by": "a\0b"}, {"reason": "a\0b"}])
def test_an_author_that_cannot_be_stored_is_refused(
    client: ApiClient, fields: dict[str, str]
) -> None:
    client.app.tenants.create("ours")
    response = client.post("/api/tenants/ours/resume", fields)
    assert response.status_code == 422, response.text
