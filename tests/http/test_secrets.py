"""Secrets: arguments, tracebacks, tokens, and the address of the database."""

from __future__ import annotations

import logging

import pytest

from tests.http.api_client import TOKENS, ApiClient, app_on, bearer, problem, settings_with

SECRET = "secret-argument"


def _failed(client: ApiClient) -> int:
    job_id = client.add("broken", args={"secret": SECRET}, max_attempts=1)
    client.work()
    return job_id


def test_arguments_and_tracebacks_are_shown_only_to_operators_on_request(
    client: ApiClient, tokens: list[str]
) -> None:
    job_id = _failed(client)
    client.open(settings_with(client.folder, *tokens))
    for path in (f"/api/jobs/{job_id}", "/api/jobs", "/api/events?after=0&follow=false"):
        response = client.get(path, headers=bearer("admin"))
        assert response.status_code == 200
        assert SECRET not in response.text
        assert "Traceback" not in response.text
        assert "it broke" in response.text
    shown = client.get_json(f"/api/jobs/{job_id}?args=true&trace=true", headers=bearer("operator"))
    assert shown["job"]["args"] == {"secret": SECRET}
    assert "Traceback" in shown["job"]["report"]["error"]["trace"]
    listed = client.get_json("/api/jobs?args=true", headers=bearer("operator"))
    assert listed["jobs"][0]["args"] == {"secret": SECRET}


@pytest.mark.parametrize(
    "path", ["/api/jobs/1?args=true", "/api/jobs/1?trace=1", "/api/jobs?args=1"]
)
def test_a_viewer_may_not_request_arguments_or_tracebacks(
    sqlite_client: ApiClient, tokens: list[str], path: str
) -> None:
    sqlite_client.open(settings_with(sqlite_client.folder, *tokens))
    response = sqlite_client.get(path, headers=bearer("viewer"))
    assert "role operator" in problem(response, 403, "forbidden")


def test_no_log_has_arguments_or_tokens(
    client: ApiClient, tokens: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client.open(settings_with(client.folder, *tokens))
    for body in ({"task": "greet", "args": {"name": [SECRET]}}, {"task": "greet", "args": SECRET}):
        response = client.post("/api/jobs", body, headers=bearer("admin"))
        assert response.status_code == 422
    client.get(f"/api/jobs?queue={SECRET}", headers={"Authorization": f"Bearer {SECRET}"})
    client_logs = ("httpx", "httpcore")
    logged = [r.getMessage() for r in caplog.records if not r.name.startswith(client_logs)]
    assert not any(SECRET in line for line in logged)
    assert not any(token in line for line in logged for token in TOKENS.values())


def test_no_response_contains_the_password_of_the_database(sqlite_client: ApiClient) -> None:
    app = app_on(f"postgresql://ann:{SECRET}@127.0.0.1:1/none")
    down = ApiClient(app, sqlite_client.folder)
    try:
        for path in ("/readyz", "/api/jobs", "/metrics"):
            assert SECRET not in down.get(path).text
        ready = problem(down.get("/readyz"), 503, "store-unavailable")
        assert ready == "not ready: StoreUnavailable"
    finally:
        down.close()
