"""`GET /api/audit`: changes through the API, with the name of the token."""

from __future__ import annotations

import pytest

from tests.http.api_client import ApiClient, problem

pytestmark = pytest.mark.requirement("N16")


def test_changes_through_the_api_are_recorded(client: ApiClient) -> None:
    job_id = client.add()
    client.post(f"/api/jobs/{job_id}/pause", {})
    client.post("/api/queues/mail/pause", {"reason": "audit", "by": "ann"})
    client.post("/api/queues/mail/resume", {"by": "bob"})
    client.post("/api/limits/queues/mail", {"max": 3, "reason": "slow"})
    client.post("/api/limits/keys/github", {"max": 3})
    client.post("/api/queues/mail/set_weight", {"weight": 3})
    client.post("/api/lanes/lane/pause", {})
    client.post("/api/lanes/lane/resume", {})
    entries = client.get_json("/api/audit")["entries"][::-1]
    assert [(e["verb"], e["kind"], e["subject"]) for e in entries] == [
        ("pause", "job", str(job_id)),
        *(("pause", "queue", "mail"), ("resume", "queue", "mail")),
        *(("set_limit", "queue", "mail"), ("set_limit", "limit", "github")),
        *(("set_weight", "queue", "mail"), ("pause", "lane", "lane"), ("resume", "lane", "lane")),
    ]
    assert {e["via"] for e in entries} == {"http"}
    assert [e["by"] for e in entries[1:3]] == ["ann (local)", "bob (local)"]
    assert (entries[3]["reason"], entries[3]["before"]["weight"]) == ("slow", 1.0)
    found = client.get_json("/api/audit?kind=queue&subject=mail&verb=set_weight")
    assert [e["after"] for e in found["entries"]] == [{"weight": 3.0}]
    page = client.get_json("/api/audit?limit=1")
    assert (len(page["entries"]), page["next"]) == (1, page["entries"][0]["id"])


@pytest.mark.parametrize("query", ["subject=7", "kind=thing", "limit=0", "before=0", "since=now"])
def test_an_invalid_filter_is_refused(sqlite_client: ApiClient, query: str) -> None:
    problem(sqlite_client.get(f"/api/audit?{query}"), 422, "bad-input")


def test_retention_is_set_and_recorded(client: ApiClient) -> None:
    client.post("/api/retention/queues/mail", {"days": 7, "by": "ann", "reason": "privacy"})
    client.post("/api/retention/tasks/shop.ping", {"days": 0})
    rules = client.get_json("/api/retention")["rules"]
    assert [(rule["kind"], rule["name"]) for rule in rules] == [
        ("queue", "mail"),
        ("task", "shop.ping"),
    ]
    assert client.post("/api/retention/queues/mail", {}).json()["rules"] == rules[1:]
    problem(client.post("/api/retention/queues/mail", {"days": -1}), 422, "bad-input")
    entries = client.get_json("/api/audit?kind=retention&subject=queue%20mail")["entries"]
    assert [(e["after"]["days"], e["reason"]) for e in entries] == [(None, None), (7.0, "privacy")]
