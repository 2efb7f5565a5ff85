"""Queues, numbers and metrics over HTTP."""

from __future__ import annotations

import pytest

from tests.http.desk import Desk
from tests.worker.test_metrics import numbers


def test_a_queue_is_paused_and_resumed(desk: Desk) -> None:
    desk.add(queue="mail")
    body = {"reason": "deploy", "by": "ann", "until": "2100-01-01T00:00:00Z"}
    assert desk.post("/api/queues/mail/pause", body).json() == {"name": "mail", "what": "done"}
    (queue,) = desk.told("/api/queues")["queues"]
    assert (queue["name"], queue["ready"], queue["leased"]) == ("mail", 1, 0)
    assert (queue["paused_by"], queue["pause_reason"]) == ("ann (local)", "deploy")
    assert queue["paused_until"].startswith("2100-01-01")
    said = [desk.post("/api/queues/mail/resume").json()["what"] for _ in range(2)]
    assert said == ["done", "already"]
    assert desk.told("/api/queues")["queues"][0]["paused_at"] is None


def test_stats_count_live_jobs_by_what_they_wait_for(desk: Desk) -> None:
    desk.add()
    desk.add(pending=True)
    document = desk.told("/api/stats")
    counts = {name: n for name, n in document["counts"].items() if n}
    assert counts == {"ready": 1, "pending": 1}
    assert document["bound"] == 10_000


@pytest.mark.requirement("S3.8")
def test_metrics_tell_depth_and_age_of_queues(desk: Desk) -> None:
    desk.add(queue="mail")
    desk.add(queue="mail")
    desk.post("/api/queues/idle/pause")
    desk.telemetry.count("claimed", 2)
    answer = desk.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = numbers(answer.text)

    def of(name: str, **labels: str) -> float:
        return found[f"freehold_{name}", frozenset(labels.items())]

    assert of("store_up") == 1
    assert (of("queue_ready", queue="mail"), of("queue_leased", queue="mail")) == (2, 0)
    assert 0 < of("queue_oldest_ready_seconds", queue="mail") < 60
    assert of("queue_oldest_ready_seconds", queue="idle") == 0
    assert (of("queue_paused", queue="mail"), of("queue_paused", queue="idle")) == (0, 1)
    assert of("jobs", waits="ready") == 2
    assert of("claimed_total") == 2
