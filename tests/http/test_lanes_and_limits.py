"""Lanes, limits, weights and workers over HTTP."""

from __future__ import annotations

from freehold.model.job import NewJob
from freehold.model.limit import Limit, Rate
from freehold.model.worker_info import Heartbeat
from freehold.store.store import Store
from freehold.store.types import ClaimRequest, QueueDemand
from tests.http.api_client import ApiClient


def store_of(client: ApiClient) -> Store:
    return client.app._client.store


def add(client: ApiClient, target: str) -> int:
    return store_of(client).enqueue([NewJob(task="t", target=target)])[0].id


def claimed(client: ApiClient) -> list[int]:
    request = ClaimRequest(owner="w1", lease_seconds=30.0, demands=(QueueDemand("default", 10),))
    return [attempt.job_id for attempt in store_of(client).claim(request)]


def test_a_lane_is_listed_paused_and_resumed(client: ApiClient) -> None:
    job = add(client, "account-1")
    paused = client.request(
        "POST", "/api/lanes/account-1/pause", json={"reason": "audit", "by": "ann"}
    )
    assert paused.json() == {"target": "account-1", "status": "done"}
    (lane,) = client.request("GET", "/api/lanes").json()["lanes"]
    assert (lane["target"], lane["depth"], lane["head"]) == ("account-1", 1, job)
    assert lane["pause"]["reason"] == "audit"
    assert claimed(client) == []
    resumed = client.request("POST", "/api/lanes/account-1/resume", json={})
    assert resumed.json() == {"target": "account-1", "status": "done"}
    assert (
        client.request("POST", "/api/lanes/account-1/resume", json={}).json()["status"] == "already"
    )
    assert claimed(client) == [job]


def test_lanes_come_in_pages(client: ApiClient) -> None:
    for name in ("a", "b", "c"):
        add(client, name)
    first = client.request("GET", "/api/lanes?limit=2").json()
    assert ([lane["target"] for lane in first["lanes"]], first["next"]) == (["a", "b"], "b")
    rest = client.request("GET", "/api/lanes?limit=2&after=b").json()
    assert ([lane["target"] for lane in rest["lanes"]], rest["next"]) == (["c"], None)


def test_limits_are_set_listed_and_removed(client: ApiClient) -> None:
    body = {"max": 2, "rate": "100/min"}
    set_one = client.request("POST", "/api/limits/queues/mail", json=body)
    assert set_one.json()["limit"] == {"max_leases": 2, "rate": {"starts": 100, "seconds": 60.0}}
    client.request("POST", "/api/limits/all", json={"max": 50})
    client.request("POST", "/api/limits/keys/github:*", json={"max": 1})
    assert [(rule.name, rule.limit) for rule in store_of(client).queue_limits()] == [
        ("*", Limit(50)),
        ("mail", Limit(2, Rate(100, 60.0))),
    ]
    listed = client.request("GET", "/api/limits").json()
    assert [rule["name"] for rule in listed["keys"]] == ["github:*"]
    client.request("POST", "/api/limits/queues/mail", json={})
    assert [rule.name for rule in store_of(client).queue_limits()] == ["*"]


def test_the_error_for_an_invalid_rate_shows_the_format(client: ApiClient) -> None:
    response = client.request("POST", "/api/limits/queues/mail", json={"rate": "often"})
    assert response.status_code == 422
    assert "100/min" in response.json()["detail"]
    assert store_of(client).queue_limits() == []


def test_a_queue_is_weighed(client: ApiClient) -> None:
    assert (
        client.request("POST", "/api/queues/mail/set_weight", json={"weight": 5}).status_code == 200
    )
    (queue,) = store_of(client).queues()
    assert queue.weight == 5.0


def test_workers_are_listed(client: ApiClient) -> None:
    heartbeat = Heartbeat(
        owner="w1",
        host="here",
        pid=7,
        concurrency=4,
        queues=("default",),
        tasks=("t",),
        version="0",
    )
    store_of(client).heartbeat(heartbeat, 30.0)
    (worker,) = client.request("GET", "/api/workers").json()["workers"]
    assert (worker["owner"], worker["concurrency"], worker["state"]) == ("w1", 4, "working")
