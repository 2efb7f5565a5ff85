"""Queues, counts and metrics over HTTP."""

from __future__ import annotations

import pytest

from freehold.http.health import QUEUE_SERIES
from freehold.model.job import NewJob
from freehold.model.limit import Limit
from freehold.store.types import ClaimRequest, QueueDemand
from tests.http.api_client import ApiClient
from tests.worker.test_metrics import numbers


def test_a_queue_is_paused_and_resumed(client: ApiClient) -> None:
    client.add(queue="mail")
    body = {"reason": "deploy", "by": "ann", "until": "2100-01-01T00:00:00Z"}
    assert client.post("/api/queues/mail/pause", body).json() == {"name": "mail", "status": "done"}
    (queue,) = client.get_json("/api/queues")["queues"]
    assert (queue["name"], queue["ready"], queue["leased"]) == ("mail", 1, 0)
    assert (queue["paused_by"], queue["pause_reason"]) == ("ann (local)", "deploy")
    assert queue["paused_until"].startswith("2100-01-01")
    results = [client.post("/api/queues/mail/resume").json()["status"] for _ in range(2)]
    assert results == ["done", "already"]
    assert client.get_json("/api/queues")["queues"][0]["paused_at"] is None


def test_stats_count_live_jobs_by_what_they_wait_for(client: ApiClient) -> None:
    client.add()
    client.add(pending=True)
    document = client.get_json("/api/stats")
    counts = {name: n for name, n in document["counts"].items() if n}
    assert counts == {"ready": 1, "pending": 1}
    assert document["bound"] == 10_000


def test_stats_and_metrics_count_jobs_that_wait_for_a_limit_key(client: ApiClient) -> None:
    client.app.operator.set_key_limit("vendor", Limit(0))
    store = client.app._client.store
    store.enqueue([NewJob(task="greet", limit_key="vendor")])
    store.claim(ClaimRequest(owner="w", lease_seconds=30.0, demands=(QueueDemand("default", 1),)))
    counts = client.get_json("/api/stats")["counts"]
    assert {name: n for name, n in counts.items() if n} == {"limited": 1}
    assert 'freehold_jobs{waits="limited"} 1' in client.get("/metrics").text


def test_metrics_of_flows(client: ApiClient) -> None:
    greet = client.app.tasks.get("greet")
    client.app.batch([greet.prepare("ann")])
    found = client.get("/metrics").text
    # A seal is counted as the ends are.
    for line in ("freehold_flows_open 1", "freehold_flows_due 0", "freehold_flow_worklist 1"):
        assert line in found.splitlines(), found
    client.work()
    assert "freehold_flows_open 0" in client.get("/metrics").text.splitlines()


def test_queues_are_listed_in_pages(client: ApiClient) -> None:
    names = ["A", "B", "_c", "a", "b.c", "b:c"]
    store = client.app._client.store
    store.enqueue([NewJob(task="greet", queue=name) for name in names])
    found, after = [], ""
    for _ in range(3):
        page = client.get_json(f"/api/queues?limit=2{after}")
        found += [queue["name"] for queue in page["queues"]]
        after = f"&after={page['next']}"
    assert (found, page["next"]) == (names, None)
    assert client.get("/api/queues?limit=1001").status_code == 422
    assert client.get_json("/api/queues")["next"] is None


def test_a_page_of_queues_has_at_most_1000(sqlite_client: ApiClient) -> None:
    store = sqlite_client.app._client.store
    store.enqueue([NewJob(task="greet", queue=f"q{n:04}") for n in range(1002)])
    page = sqlite_client.get_json("/api/queues")
    assert (len(page["queues"]), page["next"]) == (1000, "q0999")
    assert len(sqlite_client.get_json("/api/queues?after=q0999")["queues"]) == 2


def test_metrics_of_many_queues_share_a_series_and_keep_their_totals(client: ApiClient) -> None:
    """The largest queues have their own series."""
    store, number = client.app._client.store, QUEUE_SERIES + 5
    jobs = [NewJob(task="greet", queue=f"q{n:03}") for n in range(number)]
    store.enqueue([*jobs, *jobs[-2:]])
    for name in ("q000", "idle"):
        client.app.operator.pause_queue(name, "ann")
    found = numbers(client.get("/metrics").text)

    def series(name: str) -> dict[str, float]:
        return {
            dict(labels)["queue"]: value
            for (each, labels), value in found.items()
            if each == f"freehold_{name}"
        }

    ready = series("queue_ready")
    assert len(ready) == QUEUE_SERIES + 1
    assert (ready["q204"], ready["q203"], ready["(others)"]) == (2, 2, 5)
    assert sum(ready.values()) == len(jobs) + 2
    assert sum(series("queue_paused").values()) == 2
    ages = series("queue_oldest_ready_seconds")
    assert 0 < ages["(others)"] <= max(ages.values())
    assert sum(series("queue_leased").values()) == 0


def test_a_pause_of_all_queues_is_listed_and_measured(client: ApiClient) -> None:
    assert client.get_json("/api/queues")["pause"] is None
    assert "freehold_all_queues_paused 0\n" in client.get("/metrics").text
    client.app.operator.pause_queue("*", "ann", "night")
    pause = client.get_json("/api/queues")["pause"]
    assert (pause["by"], pause["reason"]) == ("ann", "night")
    assert "freehold_all_queues_paused 1\n" in client.get("/metrics").text


def test_a_queue_of_delayed_jobs_is_listed_and_measured(client: ApiClient) -> None:
    client.app._client.store.enqueue([NewJob(task="greet", queue="later", delay_seconds=60.0)])
    (queue,) = client.get_json("/api/queues")["queues"]
    assert (queue["name"], queue["ready"], queue["not_ready"]) == ("later", 0, 1)
    assert 'freehold_queue_not_ready{queue="later"} 1\n' in client.get("/metrics").text


@pytest.mark.requirement("S3.8")
def test_metrics_have_depth_and_age_of_queues(client: ApiClient) -> None:
    client.add(queue="mail")
    client.add(queue="mail")
    client.post("/api/queues/idle/pause")
    client.telemetry.count("claimed", 2)
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = numbers(response.text)

    def of(name: str, **labels: str) -> float:
        return found[f"freehold_{name}", frozenset(labels.items())]

    assert of("store_up") == 1
    assert (of("queue_ready", queue="mail"), of("queue_leased", queue="mail")) == (2, 0)
    assert 0 < of("queue_oldest_ready_seconds", queue="mail") < 60
    assert of("queue_oldest_ready_seconds", queue="idle") == 0
    assert (of("queue_paused", queue="mail"), of("queue_paused", queue="idle")) == (0, 1)
    assert of("jobs", waits="ready") == 2
    assert of("claimed_total") == 2
