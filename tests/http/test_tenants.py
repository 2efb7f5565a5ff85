"""Tenants over HTTP: what is done to them, and that none reaches another's by any route."""

from __future__ import annotations

from typing import Any

import pytest

from freehold.http.asgi import TABLE
from freehold.http.request_limits import RequestLimits
from freehold.model.limit import Limit
from freehold.model.operator_actions import OperatorVerb
from freehold.store.types import JobFilter
from tests.http.desk import Desk, bearer, problem, settings_with

QUICK = RequestLimits(stream_seconds=0.0)


# -- what is done to them --------------------------------------------------------------------


@pytest.mark.requirement("S4.2")
def test_the_life_of_a_tenant(desk: Desk) -> None:
    made = desk.post("/api/tenants", {"name": "acme", "weight": 2, "max_slots": 5})
    assert made.status_code == 201
    assert (made.json()["place"], made.json()["state"]) == ("home", "active")
    assert desk.app.tenant("acme").operate.counts().ready == 0
    again = desk.post("/api/tenants", {"name": "acme"})
    assert "acme already" in problem(again, 409, "tenant-exists")

    body = {"reason": "unpaid", "by": "ann"}
    assert desk.post("/api/tenants/acme/pause", body).json() == {"name": "acme", "what": "done"}
    (line,) = desk.told("/api/tenants")["tenants"]
    assert (line["state"], line["note"]) == ("paused", "ann (local): unpaid")
    said = [desk.post("/api/tenants/acme/resume").json()["what"] for _ in range(2)]
    assert said == ["done", "already"]

    desk.post("/api/tenants/acme/weigh", {"weight": 0.5})
    shown = desk.told("/api/tenants/acme")
    assert (shown["weight"], shown["max_slots"], shown["note"]) == (0.5, None, None)

    dropped = desk.post("/api/tenants/acme/drop", {"name": "acme"})
    assert dropped.json() == {"name": "acme", "what": "done"}
    assert desk.told("/api/tenants")["tenants"] == []


def test_dropping_asks_for_the_name_again_and_spares_live_jobs(desk: Desk) -> None:
    desk.post("/api/tenants", {"name": "acme"})
    acme = desk.app.tenant("acme")
    acme.submit(desk.app.tasks.get("greet").prepare("Ann"))
    problem(desk.post("/api/tenants/acme/drop", {}), 422, "bad-input")
    wrong = desk.post("/api/tenants/acme/drop", {"name": "acne", "force": True})
    assert "say its name" in problem(wrong, 422, "bad-input")
    live = desk.post("/api/tenants/acme/drop", {"name": "acme"})
    assert "1 live jobs" in problem(live, 409, "refused")
    assert acme.operate.counts().ready == 1
    assert desk.post("/api/tenants/acme/drop", {"name": "acme", "force": True}).status_code == 200
    problem(desk.get("/api/tenants/acme"), 404, "tenant-not-found")


@pytest.mark.parametrize(
    ("path", "body", "word"),
    [
        ("/api/tenants", {"name": "Acme"}, "bad-input"),
        ("/api/tenants", {"name": "beta", "weight": 0}, "bad-input"),
        ("/api/tenants", {"name": "beta", "place": "west"}, "bad-settings"),
        ("/api/tenants/acme/pause", {"reason": "a\0b"}, "bad-input"),
        ("/api/tenants/acme/pause", {"by": "a\0b"}, "bad-name"),
    ],
)
def test_what_makes_no_sense_changes_nothing(
    desk: Desk, path: str, body: dict[str, Any], word: str
) -> None:
    desk.post("/api/tenants", {"name": "acme"})
    before = desk.told("/api/tenants")["tenants"]
    problem(desk.post(path, body), 422, word)
    assert desk.told("/api/tenants")["tenants"] == before


# -- who sees whom ---------------------------------------------------------------------------


def _two_tenants(desk: Desk, tokens: list[str]) -> None:
    """`ours` and `other`, each with a job, a lane, a queue, a limit and a past of its own; and the
    store of the directory, with jobs that are nobody's of theirs."""
    for name in ("ours", "other"):
        desk.app.tenants.create(name)
        _furnish(desk.app.tenant(name), name)
    _furnish(desk.app, "landlord")
    desk.open(settings_with(desk.folder, *tokens), QUICK)


def _furnish(app: Any, name: str) -> None:
    greet = app.tasks.get("greet").using(target=f"lane-of-{name}", queue=f"queue-of-{name}")
    for verb in (OperatorVerb.PAUSE, OperatorVerb.CANCEL):
        handle = app.submit(greet.prepare(f"secret-of-{name}"))
        app.operate.act(verb, [handle.id], f"boss-of-{name}", f"reason-of-{name}")
    app.submit(greet.prepare(f"secret-of-{name}"))
    app.operate.set_key_limit(f"limit-of-{name}", Limit(1))


@pytest.mark.requirement("S4.2")
def test_a_tenants_token_meets_nobody_else_on_any_route(desk: Desk, tokens: list[str]) -> None:
    """Every route, asked as an admin of one tenant, about the other's ids, lanes, queues and name:
    no answer names the other, and nothing of the other has changed."""
    _two_tenants(desk, tokens)
    before = {name: _state(desk, name) for name in ("ours", "landlord")}
    bodies: dict[str, Any] = {
        "/api/jobs": {"task": "greet", "args": {"name": "x"}, "target": "lane-of-ours"},
        "/api/queues/{name}/weigh": {"weight": 2},
        "/api/tenants": {"name": "fresh"},
        "/api/tenants/{tenant}/weigh": {"weight": 2},
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
            answer = desk.ask(route.method, path + query, headers=bearer("admin@other"), **sent)
            assert "-of-landlord" not in answer.text, route.name
            told = answer.text.replace("lane-of-ours", "").replace("queue-of-ours", "")
            assert "-of-ours" not in told, route.name
            if route.at.startswith("/api/tenants/"):
                assert answer.status_code == 403, route.name
    assert {name: _state(desk, name) for name in ("ours", "landlord")} == before


def test_a_tenants_token_is_served_what_is_its_own(desk: Desk, tokens: list[str]) -> None:
    _two_tenants(desk, tokens)
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
        answer = desk.get(path, headers=headers)
        assert answer.status_code == 200, answer.text
        assert own in answer.text
    body = {"task": "greet", "args": {"name": "x"}}
    assert desk.post("/api/jobs", body, headers=headers).status_code == 201
    assert len(_jobs(desk.app.tenant("other"))) == 4


def test_a_list_of_tenants_has_what_its_reader_may_see(desk: Desk, tokens: list[str]) -> None:
    _two_tenants(desk, tokens)

    def seen(role: str) -> list[str]:
        found = desk.told("/api/tenants", headers=bearer(role))["tenants"]
        return [line["name"] for line in found]

    assert seen("viewer") == ["other", "ours"]
    assert (seen("admin@ours"), seen("admin@other")) == (["ours"], ["other"])
    assert desk.told("/api/tenants/ours", headers=bearer("admin@ours"))["name"] == "ours"
    for name in ("other", "unheard_of"):  # whether it exists is not told either
        answer = desk.get(f"/api/tenants/{name}", headers=bearer("admin@ours"))
        assert problem(answer, 403, "forbidden") == "this token is of another tenant"


def test_a_token_of_a_tenant_that_is_gone_opens_nothing_and_tells_no_names(
    desk: Desk, tokens: list[str]
) -> None:
    desk.app.tenants.create("others")
    desk.open(settings_with(desk.folder, *tokens), QUICK)
    for path in ("/api/jobs", "/api/tenants/other", "/metrics"):
        answer = desk.get(path, headers=bearer("admin@other"))
        assert problem(answer, 403, "forbidden") == "there is no tenant other"
    assert desk.told("/api/tenants", headers=bearer("admin@other"))["tenants"] == []


def test_the_api_of_a_tenant_that_is_gone_is_not_ready(desk: Desk) -> None:
    desk.app.tenants.create("others")
    desk.open(settings_with(desk.folder), tenant="other")
    for path in ("/readyz", "/api/queues"):
        answer = desk.get(path)
        assert "others" not in problem(answer, 503, "schema-missing")


def _state(desk: Desk, name: str) -> Any:
    """All that can be seen of a tenant, or of the directory's own store."""
    app = desk.app if name == "landlord" else desk.app.tenant(name)
    operate = app.operate
    jobs = _jobs(app)
    lines = [line for line in desk.app.tenants.all() if line.name == name]
    return (
        jobs,
        operate.queues(),
        operate.lanes(),
        operate.queue_limits(),
        operate.key_limits(),
        operate.newest_event(),
        lines,
    )


def _jobs(app: Any) -> list[Any]:
    return list(app.operate.jobs(JobFilter()).jobs)
