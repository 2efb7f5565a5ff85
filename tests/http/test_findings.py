"""Findings, failures, explanations of a list and previews over HTTP."""

from __future__ import annotations

from tests.http.api_client import ApiClient


def test_findings_have_remedies(client: ApiClient) -> None:
    assert client.get_json("/api/findings")["findings"] == []
    client.add(queue="mail")
    (found,) = client.get_json("/api/findings")["findings"]
    assert (found["check"], found["level"]) == ("workers", "error")
    assert found["remedy"]["subject"] == "mail"


def test_failures_are_grouped(client: ApiClient) -> None:
    for secret in ("a", "b"):
        client.add(task="broken", args={"secret": secret}, max_attempts=1)
    client.work()
    found = client.get_json("/api/failures")
    (group,) = found["groups"]
    assert (group["task"], group["error"], group["message"]) == (
        "broken",
        "builtins.ValueError",
        "it broke",
    )
    assert (group["count"], found["looked_at"]) == (2, 2)


def test_the_jobs_of_a_list_are_explained(client: ApiClient) -> None:
    ids = [client.add(), client.add(delay_seconds=60)]
    found = client.get_json(f"/api/jobs/explain?id={ids[0]}&id={ids[1]}&id=999")
    assert [each["id"] for each in found] == ids
    assert found[1]["causes"] == client.get_json(f"/api/jobs/{ids[1]}/explain")["causes"]


def test_a_preview_of_chosen_jobs(client: ApiClient) -> None:
    job_id = client.add()
    response = client.post("/api/jobs/preview", {"verb": "retry", "ids": [job_id]})
    assert response.json()["jobs"] == [
        {
            "id": job_id,
            "status": "refused",
            "state": "queued",
            "cause": "queued: only a finished job can be retried",
        }
    ]


def test_the_attempts_of_a_time_and_the_jobs_of_a_lane(client: ApiClient) -> None:
    job_id = client.add(args={"name": "ann"}, target="a/b")
    assert client.get_json("/api/lanes/a/jobs")["lane"] is None  # a lane may be called so
    listed = client.get_json(f"/api/lane-jobs/a/b?around={job_id}")
    assert [(job["id"], job["args"]) for job in listed] == [(job_id, None)]
    client.work()
    found = client.get_json("/api/attempts", params={"since": "2020-01-01T00:00:00Z"})
    (span,) = found["spans"]
    assert (span["job_id"], span["outcome"], found["complete"]) == (job_id, "succeeded", True)
