"""Schedules over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.http.api_client import ApiClient

HOURLY = {"every_seconds": 3600, "job": {"task": "greet", "args": {"name": "ann"}}}


def put(client: ApiClient, name: str = "books", **changes: object) -> dict[str, object]:
    response = client.post(f"/api/schedules/{name}", {**HOURLY, "by": "ann", **changes})
    assert response.status_code == 200, response.text
    document: dict[str, object] = response.json()
    return document


@pytest.mark.requirement("N3")
def test_a_schedule_is_put_listed_and_shows_its_next_runs(client: ApiClient) -> None:
    made = put(client)
    assert (made["name"], made["state"], made["time"]) == ("books", "active", "every 1 h")
    assert made["edited_by"] == "ann (local)"
    (listed,) = client.get_json("/api/schedules")["schedules"]
    assert listed == client.get_json("/api/schedules/books")
    runs = client.get_json("/api/schedules/books/next?count=3")["next"]
    first, second, _ = map(datetime.fromisoformat, runs)
    assert (second - first).total_seconds() == 3600
    assert first > datetime.now(UTC)


def test_the_arguments_of_a_schedule_are_shown_nowhere(client: ApiClient) -> None:
    put(client, job={"task": "greet", "args": {"name": "hush-hush"}})
    for path in ("/api/schedules", "/api/schedules/books", "/api/schedules/books/next"):
        assert "hush-hush" not in client.get(path).text


@pytest.mark.requirement("N3")
def test_a_schedule_is_paused_with_reason_and_resumed(client: ApiClient) -> None:
    put(client)
    client.post("/api/schedules/books/pause", {"reason": "audit", "by": "ann"})
    shown = client.get_json("/api/schedules/books")
    assert (shown["state"], shown["pause_reason"]) == ("paused", "audit")
    assert client.get_json("/api/schedules/books/next")["next"] == []
    results = [client.post("/api/schedules/books/resume").json()["status"] for _ in range(2)]
    assert results == ["done", "already"]


@pytest.mark.requirement("N2", "N3")
def test_run_now_makes_a_job_and_not_a_second_one_beside_it(client: ApiClient) -> None:
    put(client)
    first, second = (client.post("/api/schedules/books/run") for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"]


@pytest.mark.requirement("N3")
def test_a_repeated_backfill_makes_no_job_twice(client: ApiClient) -> None:
    put(client)
    body = {"since": "2026-01-01T00:00:00Z", "until": "2026-01-01T05:30:00Z"}
    first = client.post("/api/schedules/books/backfill", body).json()
    assert first["ticks"] == len(first["jobs"]) in (5, 6)
    again = client.post("/api/schedules/books/backfill", {**body, "reason": "again"}).json()
    assert (again["ticks"], again["jobs"]) == (first["ticks"], [])
    (newest, *_) = client.get_json("/api/audit?kind=schedule")["entries"]
    assert (newest["verb"], newest["reason"]) == ("backfill", "again")


def test_a_schedule_is_dropped(client: ApiClient) -> None:
    put(client)
    assert client.post("/api/schedules/books/drop").json()["status"] == "done"
    assert client.get("/api/schedules/books").status_code == 404
    assert client.post("/api/schedules/books/drop").status_code == 404


@pytest.mark.parametrize(
    "changes",
    [
        {"cron": "0 0 30 2 *", "every_seconds": None},
        {"cron": "0 7 * * *", "zone": "Europe/Berln", "every_seconds": None},
        {"cron": "0 7 * * *"},
        {"every_seconds": None},
        {"overlap": "maybe"},
        {"catch_up": "none", "within_seconds": 60},
        {"job": {"task": "greet", "args": {"name": "ann"}, "unique_key": "mine"}},
        {"job": {"task": "greet", "args": {"nme": "ann"}}},
        {"job": {"task": "unknown"}},
        {"ends_at": "2020-01-01T00:00:00Z"},
    ],
)
def test_bad_input_is_a_422_and_writes_nothing(
    client: ApiClient, changes: dict[str, object]
) -> None:
    response = client.post("/api/schedules/books", {**HOURLY, **changes})
    assert response.status_code == 422, response.text
    assert client.get_json("/api/schedules")["schedules"] == []


def test_what_no_app_declares_cannot_be_reset(client: ApiClient) -> None:
    put(client)
    assert client.post("/api/schedules/books/reset").status_code == 409
