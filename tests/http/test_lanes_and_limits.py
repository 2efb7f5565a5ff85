"""Lanes, limits, weights and workers over HTTP."""

from __future__ import annotations

from freehold.model.job import NewJob
from freehold.model.limit import Limit, Rate
from freehold.model.worker_info import Heartbeat
from freehold.store.store import Store
from freehold.store.types import ClaimRequest, QueueDemand
from tests.http.desk import Desk


def store_of(desk: Desk) -> Store:
    return desk.app.client.store


def add(desk: Desk, target: str) -> int:
    return store_of(desk).enqueue([NewJob(task="t", target=target)])[0].id


def claimed(desk: Desk) -> list[int]:
    ask = ClaimRequest(owner="w1", lease_seconds=30.0, wants=(QueueDemand("default", 10),))
    return [attempt.job_id for attempt in store_of(desk).claim(ask)]


def test_a_lane_is_seen_paused_and_resumed(desk: Desk) -> None:
    job = add(desk, "account-1")
    paused = desk.ask("POST", "/api/lanes/account-1/pause", json={"reason": "audit", "by": "ann"})
    assert paused.json() == {"target": "account-1", "what": "done"}
    (lane,) = desk.ask("GET", "/api/lanes").json()["lanes"]
    assert (lane["target"], lane["depth"], lane["head"]) == ("account-1", 1, job)
    assert lane["pause"]["reason"] == "audit"
    assert claimed(desk) == []
    resumed = desk.ask("POST", "/api/lanes/account-1/resume", json={})
    assert resumed.json() == {"target": "account-1", "what": "done"}
    assert desk.ask("POST", "/api/lanes/account-1/resume", json={}).json()["what"] == "already"
    assert claimed(desk) == [job]


def test_lanes_come_in_pages(desk: Desk) -> None:
    for name in ("a", "b", "c"):
        add(desk, name)
    first = desk.ask("GET", "/api/lanes?limit=2").json()
    assert ([lane["target"] for lane in first["lanes"]], first["next"]) == (["a", "b"], "b")
    rest = desk.ask("GET", "/api/lanes?limit=2&after=b").json()
    assert ([lane["target"] for lane in rest["lanes"]], rest["next"]) == (["c"], None)


def test_limits_are_set_seen_and_lifted(desk: Desk) -> None:
    body = {"max": 2, "rate": "100/min"}
    set_one = desk.ask("POST", "/api/limits/queues/mail", json=body)
    assert set_one.json()["limit"] == {"max_leases": 2, "rate": {"starts": 100, "seconds": 60.0}}
    desk.ask("POST", "/api/limits/all", json={"max": 50})
    desk.ask("POST", "/api/limits/keys/github:*", json={"max": 1})
    assert [(rule.name, rule.limit) for rule in store_of(desk).queue_limits()] == [
        ("*", Limit(50)),
        ("mail", Limit(2, Rate(100, 60.0))),
    ]
    listed = desk.ask("GET", "/api/limits").json()
    assert [rule["name"] for rule in listed["keys"]] == ["github:*"]
    desk.ask("POST", "/api/limits/queues/mail", json={})
    assert [rule.name for rule in store_of(desk).queue_limits()] == ["*"]


def test_a_senseless_rate_says_what_to_write(desk: Desk) -> None:
    answer = desk.ask("POST", "/api/limits/queues/mail", json={"rate": "often"})
    assert answer.status_code == 422
    assert "100/min" in answer.json()["detail"]
    assert store_of(desk).queue_limits() == []


def test_a_queue_is_weighed(desk: Desk) -> None:
    assert desk.ask("POST", "/api/queues/mail/weigh", json={"weight": 5}).status_code == 200
    (queue,) = store_of(desk).queues()
    assert queue.weight == 5.0


def test_workers_are_listed(desk: Desk) -> None:
    beat = Heartbeat(
        owner="w1",
        host="here",
        pid=7,
        concurrency=4,
        queues=("default",),
        tasks=("t",),
        version="0",
    )
    store_of(desk).beat(beat, 30.0)
    (worker,) = desk.ask("GET", "/api/workers").json()["workers"]
    assert (worker["owner"], worker["concurrency"], worker["state"]) == ("w1", 4, "working")
