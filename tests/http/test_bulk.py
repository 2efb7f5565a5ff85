"""Bulk operations over HTTP."""

from __future__ import annotations

import pytest

from freehold.model.operator_actions import OperatorVerb
from tests.http.api_client import ApiClient, problem

pytestmark = pytest.mark.requirement("N16")

CANCELED = {"verb": "retry", "filter": {"states": ["canceled"]}}


def canceled(client: ApiClient, count: int = 2) -> list[int]:
    ids = [client.add(queue="q") for _ in range(count)]
    for job_id in ids:
        client.act(OperatorVerb.CANCEL, job_id)
    return ids


def test_a_few_jobs_are_changed_by_the_request(client: ApiClient) -> None:
    ids = canceled(client)
    preview = client.post("/api/bulk/preview", CANCELED).json()
    assert (preview["jobs"], preview["done"]) == (2, {"canceled": 2})
    started = client.post("/api/bulk", {**CANCELED, "by": "ann", "reason": "again"})
    assert (started.status_code, started.json()["state"]) == (201, "done")
    assert {client.get_json(f"/api/jobs/{job_id}")["job"]["state"] for job_id in ids} == {"queued"}
    listed = client.get_json("/api/bulk")
    assert [each["done"] for each in listed["operations"]] == [2]
    assert listed["operations"][0]["by"] == "ann (local)"
    assert client.get_json(f"/api/bulk/{started.json()['id']}")["left"] == 0


def test_a_large_operation_is_stopped_and_resumed(
    client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freehold.operations.bulk.AT_ONCE", 1)
    canceled(client)
    number = client.post("/api/bulk", CANCELED).json()["id"]
    assert client.post(f"/api/bulk/{number}/stop", {"by": "ann"}).json()["state"] == "stopped"
    resumed = client.post(f"/api/bulk/{number}/resume", {"reason": "go on"}).json()
    assert (resumed["state"], resumed["left"]) == ("running", 2)
    problem(client.post("/api/bulk/99/stop", {}), 404, "bulk-not-found")


def test_waiting_jobs_are_amended_and_deleted(client: ApiClient) -> None:
    job_id = client.add(queue="q")
    amend = {"verb": "amend", "filter": {"queue": "q"}, "changes": {"priority": 3, "queue": "r"}}
    assert client.post("/api/bulk", amend).json()["done"] == 1
    assert client.get_json(f"/api/jobs/{job_id}")["job"]["priority"] == 3
    deleted = client.post(f"/api/jobs/{job_id}/delete", {"reason": "privacy"})
    assert deleted.json() == {"id": job_id, "status": "done"}
    problem(client.get(f"/api/jobs/{job_id}"), 404, "job-not-found")


@pytest.mark.parametrize(
    "body",
    [
        {"verb": "retry", "filter": {}},
        {"verb": "retry", "filter": {"queue": "q"}},
        {"verb": "explode", "filter": {"queue": "q"}},
        {"verb": "amend", "filter": {"queue": "q"}},
        {"verb": "cancel", "filter": {"queue": "q"}, "changes": {"priority": 1}},
        {"verb": "cancel", "filter": {"queue": "q", "colour": "red"}},
    ],
)
def test_an_invalid_operation_is_refused(sqlite_client: ApiClient, body: object) -> None:
    problem(sqlite_client.post("/api/bulk", body), 422, "bad-input")
    assert sqlite_client.get_json("/api/bulk")["operations"] == []
