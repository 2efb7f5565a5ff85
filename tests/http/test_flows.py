"""Batches and workflows over HTTP."""

from __future__ import annotations

import pytest

from freehold import Freehold
from tests.http.api_client import ApiClient, problem


def batch(app: Freehold, *names: str, task: str = "greet") -> int:
    """A batch of one job for each name; "broken" fails."""
    known = app.tasks.get(task)
    return app.batch([known.prepare(name) for name in names], name="mails").id


def workflow(app: Freehold) -> int:
    greet, broken = app.tasks.get("greet"), app.tasks.get("broken")
    with app.workflow("nightly", key="monday") as flow:
        first = flow.add(greet, "swordfish", name="extract")
        second = flow.add(broken, "swordfish", after=first, name="clean")
        flow.map(greet, ["a", "b"], after=second, name="load")
    return flow.id


def test_flows_are_listed_in_pages(client: ApiClient) -> None:
    first, second = batch(client.app, "ann", "bob"), workflow(client.app)
    page = client.get_json("/api/flows?limit=1")
    assert [each["id"] for each in page["flows"]] == [second]
    (found,) = client.get_json(f"/api/flows?before={page['next']}")["flows"]
    assert (found["id"], found["kind"], found["state"]) == (first, "batch", "open")
    assert found["counts"]["total"] == 2
    listed = client.get_json("/api/flows?kind=workflow&state=open")["flows"]
    assert [(each["name"], each["key"]) for each in listed] == [("nightly", "monday")]
    assert client.get_json("/api/flows?kind=gather")["flows"] == []


def test_a_workflow_has_nodes_with_states(client: ApiClient) -> None:
    flow = workflow(client.app)
    assert client.get_json(f"/api/flows/{flow}")["callbacks"] == []
    client.work()
    nodes = client.get_json(f"/api/flows/{flow}/nodes")
    found = [(node["name"], node["state"], node["sources"]) for node in nodes]
    assert found == [
        ("extract", "succeeded", []),
        ("clean", "failed", [1]),
        ("load", "canceled", [2]),
    ]
    assert nodes[2]["counts"]["canceled"] == 2
    assert client.get_json(f"/api/flows/{flow}")["flow"]["state"] == "failed"
    assert "swordfish" not in str(nodes)


def test_members_are_listed_without_arguments(client: ApiClient) -> None:
    flow = batch(client.app, "swordfish", "bob", "eve")
    page = client.get_json(f"/api/flows/{flow}/members?limit=2")
    assert [job["args"] for job in page["jobs"]] == [None, None]
    rest = client.get_json(f"/api/flows/{flow}/members?after={page['next']}")
    assert (len(rest["jobs"]), rest["next"]) == (1, None)
    failed = client.get_json(f"/api/flows/{flow}/members?state=failed&state=canceled")
    assert failed == {"jobs": [], "next": None}


def test_a_flow_is_canceled_and_retried(client: ApiClient) -> None:
    flow = batch(client.app, "ann", "bob")
    body = {"reason": "wrong file", "by": "ann"}
    canceled = client.post(f"/api/flows/{flow}/cancel", body)
    assert canceled.json() == {"id": flow, "status": "done"}
    assert client.post(f"/api/flows/{flow}/cancel").json()["status"] == "already"
    found = client.get_json(f"/api/flows/{flow}")["flow"]
    assert (found["state"], found["cancel_reason"]) == ("canceled", "wrong file")
    assert found["canceled_by"] == "ann (local)"
    assert client.post(f"/api/flows/{flow}/retry", body).json() == {"id": flow, "jobs": 2}
    client.work()
    assert client.get_json(f"/api/flows/{flow}")["flow"]["state"] == "succeeded"
    entries = client.get_json("/api/audit?kind=flow")["entries"]
    assert [(each["verb"], each["via"], each["reason"]) for each in entries] == [
        ("retry", "http", "wrong file"),
        ("cancel", "http", "wrong file"),
    ]


def test_a_batch_is_sealed(client: ApiClient) -> None:
    with pytest.raises(RuntimeError), client.app.open_batch("left") as left:
        raise RuntimeError
    assert client.post(f"/api/flows/{left.id}/seal").json()["status"] == "done"
    assert client.post(f"/api/flows/{left.id}/seal").json()["status"] == "already"
    client.work()
    assert client.get_json(f"/api/flows/{left.id}")["flow"]["state"] == "succeeded"


@pytest.mark.parametrize("rest", ["", "/nodes", "/members"])
def test_an_unknown_flow_is_not_found(client: ApiClient, rest: str) -> None:
    problem(client.get(f"/api/flows/7{rest}"), 404, "flow-not-found")


@pytest.mark.parametrize("verb", ["cancel", "retry", "seal"])
def test_an_unknown_flow_is_not_changed(client: ApiClient, verb: str) -> None:
    problem(client.post(f"/api/flows/7/{verb}"), 404, "flow-not-found")
    assert client.get_json("/api/audit?kind=flow")["entries"] == []


@pytest.mark.parametrize(
    "query", ["kind=group", "state=done", "limit=0", "limit=1001", "before=0", "x=1"]
)
def test_a_wrong_query_is_refused(sqlite_client: ApiClient, query: str) -> None:
    problem(sqlite_client.get(f"/api/flows?{query}"), 422, "bad-input")
