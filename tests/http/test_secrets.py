"""What must stay private: arguments, tracebacks, tokens, and where the database is."""

from __future__ import annotations

import logging

import pytest

from tests.http.desk import TOKENS, Desk, app_on, bearer, problem, settings_with

SECRET = "argument-that-nobody-may-read"


def _failed(desk: Desk) -> int:
    job_id = desk.add("broken", args={"secret": SECRET}, max_attempts=1)
    desk.work()
    return job_id


def test_arguments_and_tracebacks_are_masked_unless_an_operator_asks(
    desk: Desk, tokens: list[str]
) -> None:
    job_id = _failed(desk)
    desk.open(settings_with(desk.folder, *tokens))
    for path in (f"/api/jobs/{job_id}", "/api/jobs", "/api/events?after=0&follow=false"):
        answer = desk.get(path, headers=bearer("admin"))
        assert answer.status_code == 200
        assert SECRET not in answer.text
        assert "Traceback" not in answer.text
        assert "it broke" in answer.text
    shown = desk.told(f"/api/jobs/{job_id}?args=true&trace=true", headers=bearer("operator"))
    assert shown["job"]["args"] == {"secret": SECRET}
    assert "Traceback" in shown["job"]["report"]["error"]["trace"]
    listed = desk.told("/api/jobs?args=true", headers=bearer("operator"))
    assert listed["jobs"][0]["args"] == {"secret": SECRET}


@pytest.mark.parametrize(
    "path", ["/api/jobs/1?args=true", "/api/jobs/1?trace=1", "/api/jobs?args=1"]
)
def test_a_viewer_may_not_ask_for_them(sqlite_desk: Desk, tokens: list[str], path: str) -> None:
    sqlite_desk.open(settings_with(sqlite_desk.folder, *tokens))
    answer = sqlite_desk.get(path, headers=bearer("viewer"))
    assert "role operator" in problem(answer, 403, "forbidden")


def test_no_log_has_arguments_or_tokens(
    desk: Desk, tokens: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    desk.open(settings_with(desk.folder, *tokens))
    for body in ({"task": "greet", "args": {"name": [SECRET]}}, {"task": "greet", "args": SECRET}):
        answer = desk.post("/api/jobs", body, headers=bearer("admin"))
        assert answer.status_code == 422
    desk.get(f"/api/jobs?queue={SECRET}", headers={"Authorization": f"Bearer {SECRET}"})
    caller = ("httpx", "httpcore")  # who asks may log what it likes
    logged = [r.getMessage() for r in caplog.records if not r.name.startswith(caller)]
    assert not any(SECRET in line for line in logged)
    assert not any(token in line for line in logged for token in TOKENS.values())


def test_nobody_is_told_the_password_of_the_database(sqlite_desk: Desk) -> None:
    app = app_on(f"postgresql://ann:{SECRET}@127.0.0.1:1/none")
    down = Desk(app, sqlite_desk.folder)
    try:
        for path in ("/readyz", "/api/jobs", "/metrics"):
            assert SECRET not in down.get(path).text
        ready = problem(down.get("/readyz"), 503, "store-unavailable")
        assert ready == "not ready: StoreUnavailable"
    finally:
        down.close()
